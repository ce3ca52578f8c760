"""Projections in memory, for unit tests and the simulator."""

from __future__ import annotations

from collections.abc import Sequence

from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
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

    async def clear(self) -> None:
        """Delete everything."""
        self.rows.clear()
        self.checkpoints.clear()

    def of(self, kind: type[Row]) -> list[Row]:
        """Return the rows of one table, by key."""
        return [row for (one, _), row in sorted(self.rows.items(), key=_by_key) if one is kind]


def _by_key(item: tuple[tuple[type[Row], PrimaryKey], Row]) -> tuple[str, PrimaryKey]:
    (kind, key), _ = item
    return kind.__name__, key
