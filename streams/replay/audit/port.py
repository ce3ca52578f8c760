"""Port of an audit: the rows and snapshots that projectors stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from streams.payload.port import Scope
from streams.projector.rows import ExecutionRow, Row, SnapshotRow


@dataclass(frozen=True, slots=True)
class ProjectedRow:
    """A row as it is stored, and the checksum stored with it."""

    row: Row
    checksum: str | None
    expired_at: datetime | None = None
    """Of a result."""


@dataclass(frozen=True, slots=True)
class ProjectedExecution:
    """An execution's own row, and its rows that have not ended; of one moment."""

    row: ExecutionRow
    checksum: str | None
    still_open: Sequence[ProjectedRow]


class RowKey(NamedTuple):
    """The id of a row, and its last event."""

    key: int
    last_seq: int


class ProjectedRows(Protocol):
    """Reads what projectors stored, without trusting it.

    Every method raises Unavailable when the tables cannot be reached.
    """

    async def execution(self, execution_id: int) -> ProjectedExecution | None:
        """Return an execution; None if it has no row."""
        ...

    async def rows(self, kind: type[Row], keys: Sequence[int]) -> Mapping[int, ProjectedRow]:
        """Return rows by id, without those that do not exist."""
        ...

    async def keys(
        self, kind: type[Row], execution_id: int, through_seq: int, *, after: int, limit: int
    ) -> Sequence[RowKey]:
        """Return the ids of an execution's rows, in order, that folds make."""
        ...

    async def snapshot_after(self, execution_id: int, seq: int) -> SnapshotRow | None:
        """Return the first snapshot after a place."""
        ...

    async def executions(
        self, scope: Scope, *, only_finished: bool, before: int | None, limit: int
    ) -> Sequence[int]:
        """Return the executions of the log, the newest first, with ids below `before`."""
        ...
