"""What a frame came to: what its commit says, and what its fence remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streams.events.model import PayloadRef
from streams.payload.content import reference_from, reference_json
from streams.worker.port import Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The outcome of a frame. `cursor` is where it ended, and where a continuation begins."""

    rows: int
    failed_rows: int = 0
    continues: bool = False
    cursor: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    output: PayloadRef | None = None

    def fields(self) -> dict[str, Any]:
        """Return what `frame.committed` carries."""
        return {
            "status": "partial" if self.failed_rows else "success",
            "meta": {
                "rows": self.rows,
                "failed_rows": self.failed_rows,
                "continues": self.continues,
            },
            "context": {"cursor": dict(self.cursor)},
            "result": dict(self.result),
            "payload_ref": self.output,
        }

    def saved(self) -> Saved:
        """Return what a later attempt needs to commit this in our place."""
        output = {
            "ref": None if self.output is None else reference_json(self.output),
            "failed_rows": self.failed_rows,
            "continues": self.continues,
            "result": dict(self.result),
        }
        return Saved(row_count=self.rows, cursor=dict(self.cursor), output=output)


def adopt(saved: Saved) -> Commit:
    """Return the commit that an earlier attempt saved and did not live to make."""
    output = saved.output or {}
    ref = output.get("ref")
    return Commit(
        rows=saved.row_count,
        failed_rows=int(output.get("failed_rows", 0)),
        continues=bool(output.get("continues")),
        cursor=saved.cursor or {},
        result=output.get("result") or {},
        output=None if ref is None else reference_from(ref),
    )
