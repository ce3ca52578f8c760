"""Logs of one long execution each, with snapshots as a projector takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import islice

from streams.app import Log
from streams.dev.bench.long_loop import long_loop
from streams.events.model import Event, Root
from streams.payload.port import Scope
from streams.projector.port import ProjectionStore
from streams.projector.rows import Changes, ExecutionRow, SnapshotRow
from streams.projector.views import Views, by_root

CALL, BATCH = 2000, 2000
"""Events of an append, and of a batch of the fold."""


async def fill(log: Log, scope: Scope, length: int) -> int:
    """Append the events of one execution, and return its id."""
    execution_id = log.ids.next()
    events = long_loop(scope, log.ids.next, execution_id=execution_id, length=length)
    while batch := list(islice(events, CALL)):
        await log.store.append(batch)
    return execution_id


async def fold_live(
    log: Log, store: ProjectionStore, execution_id: int, length: int, interval: int
) -> str:
    """Fold as a projector does, save its snapshots, and return the last checksum.

    The snapshot of the last event is not saved, so that a replay has `interval` events to
    read: the most.
    """
    views, checksum = Views(log.store, snapshot_interval=interval), ""
    async for batch in _batches(log, execution_id):
        folded = await views.fold(by_root(batch))
        views.remember(folded)
        (row,) = folded.changes.of(ExecutionRow)
        assert isinstance(row, ExecutionRow)
        checksum = row.state_checksum or ""
        snapshots = Changes()
        snapshots.add(one for one in folded.changes.of(SnapshotRow) if one.last_seq < length)
        if len(snapshots):
            await store.save(snapshots, [])
    return checksum


async def _batches(log: Log, execution_id: int) -> AsyncIterator[list[Event]]:
    batch: list[Event] = []
    async for event in log.store.read_root(Root("execution", execution_id)):
        batch.append(event)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
