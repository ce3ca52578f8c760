"""Projections in memory, for unit tests and the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from streams.events.model import Root
from streams.payload.port import Scope
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.versions import ProjectionVersion
from streams.projector.port import Checkpoint
from streams.projector.rows import (
    CatalogRow,
    Changes,
    CommandRow,
    ExecutionRow,
    FrameRow,
    OutputRow,
    PrimaryKey,
    ResultEndRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
)

KINDS: tuple[type[Row], ...] = (
    ExecutionRow,
    StageRow,
    FrameRow,
    OutputRow,
    CommandRow,
    CatalogRow,
    ResultRefRow,
    ResultEndRow,
    SnapshotRow,
    BusinessStateRow,
    BusinessProgressRow,
)


class MemoryProjections:
    """Stores rows in dictionaries, under the same rule: a newer row is not replaced."""

    def __init__(self) -> None:
        self.rows: dict[tuple[type[Row], PrimaryKey], Row] = {}
        self.checkpoints: dict[tuple[str, str, str, int], Checkpoint] = {}
        self.versions: dict[tuple[Scope, str, int], ProjectionVersion] = {}

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Write rows and checkpoints."""
        for kind in KINDS:
            for row in changes.of(kind):
                known = self.rows.get((kind, row.key))
                if known is None or row.last_seq > known.last_seq:
                    self.rows[kind, row.key] = row
        for one in checkpoints:
            key = (one.projection, one.shard_id, one.topic, one.partition)
            at = self.checkpoints.get(key)
            if at is None or at.topic_id != one.topic_id or at.next_offset < one.next_offset:
                self.checkpoints[key] = one

    async def replace(self, root: Root, through_seq: int, changes: Changes) -> None:
        """Delete a root's rows as of a place or before, and write others."""
        self._delete(root.id, through_seq, is_business=False)
        await self.save(changes, ())

    async def replace_business(self, execution_id: int, through_seq: int, changes: Changes) -> None:
        """Delete an execution's business projections as of a place or before, and write others."""
        self._delete(execution_id, through_seq, is_business=True)
        await self.save(changes, ())

    def _delete(self, root_id: int, through_seq: int, *, is_business: bool) -> None:
        for key, row in list(self.rows.items()):
            belongs = isinstance(row, BusinessStateRow | BusinessProgressRow) == is_business
            if belongs and _root_id(row) == root_id and row.last_seq <= through_seq:
                del self.rows[key]

    async def clear(self) -> None:
        """Delete everything."""
        self.rows.clear()
        self.checkpoints.clear()

    def of(self, kind: type[Row]) -> list[Row]:
        """Return the rows of one table, by key."""
        return [row for (one, _), row in sorted(self.rows.items(), key=_by_key) if one is kind]


def _root_id(row: Row) -> int | None:
    """Return the root of a row; the end of a result does not have it."""
    match row:
        case SnapshotRow():
            return int(row.aggregate_id)
        case CatalogRow():
            return row.catalog_id
        case ResultEndRow():
            return None
        case _:
            return row.execution_id


def _by_key(item: tuple[tuple[type[Row], PrimaryKey], Row]) -> tuple[str, PrimaryKey]:
    (kind, key), _ = item
    return kind.__name__, key
