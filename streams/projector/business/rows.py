"""Rows of business projections, as stored: one class per table, one field per column."""

from __future__ import annotations

from dataclasses import dataclass

from streams.events.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessStateRow:
    """The state of one key over the rows of one execution, up to `last_seq`."""

    execution_id: int
    projection: str
    version: int
    key_digest: str
    tenant_id: str
    organization_id: str
    key_values: list[Json]
    state: str
    """Canonical JSON: as text, a database returns it unchanged."""
    row_count: int
    first_seq: int
    last_seq: int
    first_position: int
    last_position: int

    @property
    def key(self) -> tuple[int | str, ...]:
        """The primary key."""
        return (self.execution_id, self.projection, self.version, self.key_digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessProgressRow:
    """How far one projection of one execution was folded, and what it could not count."""

    execution_id: int
    projection: str
    version: int
    tenant_id: str
    organization_id: str
    declaration: dict[str, Json]
    declaration_digest: str
    problems: list[dict[str, Json]]
    last_seq: int
    last_position: int

    @property
    def key(self) -> tuple[int | str, ...]:
        """The primary key."""
        return (self.execution_id, self.projection, self.version)
