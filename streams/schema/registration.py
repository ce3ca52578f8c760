"""Registration of a schema: subject, version and id."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema that a registry has or must have."""

    subject: str
    version: int
    schema_id: int
    schema: str

    def as_dict(self) -> dict[str, object]:
        """Return it for printing, without the text of the schema."""
        return {"subject": self.subject, "version": self.version, "id": self.schema_id}
