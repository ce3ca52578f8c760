"""Answer of a SQL statement, as the SQL tools return it."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams.events.model import Json


@dataclass(slots=True)
class SqlAnswer:
    """Rows, their count, and the reference to what a write wrote."""

    rows: list[Json]
    row_count: int
    reference: dict[str, Json] = field(default_factory=dict)
    """{store, key, range}; empty if nothing was written."""

    @property
    def data(self) -> dict[str, Json]:
        """The answer as the task's data."""
        return {"rows": self.rows, "row_count": self.row_count, **self.reference}
