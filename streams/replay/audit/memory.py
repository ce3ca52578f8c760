"""Projected rows in memory, for unit tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.payload.port import Scope
from streams.projector.digests import row_checksum
from streams.projector.memory import MemoryProjections
from streams.projector.rows import (
    CommandRow,
    ExecutionRow,
    FrameRow,
    ResultEndRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
    row_id,
)
from streams.replay.audit.port import ProjectedExecution, ProjectedRow, RowKey


class MemoryProjectedRows:
    """Reads a store of projections in memory; `checksums` replace those of its rows."""

    def __init__(self, store: MemoryProjections) -> None:
        self._store = store
        self.checksums: dict[tuple[type[Row], int], str] = {}

    async def execution(self, execution_id: int) -> ProjectedExecution | None:
        """Return an execution."""
        row = self._store.rows.get((ExecutionRow, (execution_id,)))
        if not isinstance(row, ExecutionRow):
            return None
        still_open = [
            self._projected(one)
            for kind in (StageRow, FrameRow, CommandRow)
            for one in self._store.of(kind)
            if _is_open_of(one, execution_id)
        ]
        return ProjectedExecution(row, self._projected(row).checksum, still_open)

    async def rows(self, kind: type[Row], keys: Sequence[int]) -> Mapping[int, ProjectedRow]:
        """Return rows by id."""
        found = {key: self._store.rows.get((kind, (key,))) for key in keys}
        return {key: self._projected(row) for key, row in found.items() if row is not None}

    async def keys(
        self, kind: type[Row], execution_id: int, through_seq: int, *, after: int, limit: int
    ) -> Sequence[RowKey]:
        """Return the ids of an execution's rows, in order."""
        rows = [one for one in self._store.of(kind) if _execution_of(one) == execution_id]
        found = [RowKey(row_id(one), one.last_seq) for one in rows if row_id(one) > after]
        return [one for one in found if one.last_seq <= through_seq][:limit]

    async def snapshot_after(self, execution_id: int, seq: int) -> SnapshotRow | None:
        """Return the first snapshot after a place."""
        for one in self._store.of(SnapshotRow):
            assert isinstance(one, SnapshotRow)
            if one.aggregate_id == str(execution_id) and one.seq > seq:
                return one
        return None

    async def executions(
        self, scope: Scope, *, only_finished: bool, before: int | None, limit: int
    ) -> Sequence[int]:
        """Return the executions, the newest first."""
        found = [
            one.execution_id
            for one in self._store.of(ExecutionRow)
            if isinstance(one, ExecutionRow)
            and (one.tenant_id, one.organization_id) == (scope.tenant_id, scope.organization_id)
            and (one.end_time is not None or not only_finished)
            and (before is None or one.execution_id < before)
        ]
        return sorted(found, reverse=True)[:limit]

    def _projected(self, row: Row) -> ProjectedRow:
        if isinstance(row, ResultRefRow):
            end = self._store.rows.get((ResultEndRow, row.key))
            if isinstance(end, ResultEndRow):
                return ProjectedRow(row, None, end.expired_at)
            return ProjectedRow(row, None)
        return ProjectedRow(row, self.checksums.get((type(row), row_id(row)), row_checksum(row)))


def _execution_of(row: Row) -> int | None:
    found = getattr(row, "execution_id", None)
    return found if isinstance(found, int) else None


def _is_open_of(row: Row, execution_id: int) -> bool:
    ended_at = row.ended_at if isinstance(row, StageRow) else getattr(row, "completed_at", None)
    return ended_at is None and _execution_of(row) == execution_id
