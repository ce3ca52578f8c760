"""A log in memory whose executions were archived: heads are left, events are in segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime

from streams.events.model import Root
from streams.projector.rows import SnapshotRow
from streams.replay.memory import MemoryStoredLog
from streams.replay.port import LogHead, StoredEvent
from streams.retention.port import ExecutionFacts, PayloadNames, WrittenArchive
from streams.retention.reading import ArchivedLog
from streams.retention.run import WrittenIndex
from streams.retention.write import ArchiveWriter
from tests.support.events.examples import codec
from tests.support.replay.benches import SCOPE, ReplayBench


class EmptiedLog:
    """What a log knows of executions that were archived."""

    def __init__(self, before: MemoryStoredLog) -> None:
        self._before = before

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root."""
        return await self._before.head(root)

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return no events."""
        return []

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return None."""
        return None

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return 0."""
        return 0

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return the newest snapshot of a root at or below a place."""
        return await self._before.snapshot(root, through_seq)

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return 0."""
        return 0


class HeldPayloads:
    """Payloads of executions, as a test declares them."""

    def __init__(self, names: Mapping[int, PayloadNames] | None = None) -> None:
        self._names = names or {}

    async def of(self, execution_ids: Collection[int]) -> Mapping[int, PayloadNames]:
        """Return them by execution."""
        return {one: names for one, names in self._names.items() if one in execution_ids}


async def facts_of(bench: ReplayBench, execution_id: int) -> ExecutionFacts:
    """Return what the log knows of an execution that has ended."""
    root = Root("execution", execution_id)
    head = await bench.stored.head(root)
    assert head is not None
    return ExecutionFacts(
        execution_id=execution_id,
        scope=head.scope,
        seq=head.seq,
        chain=head.chain,
        is_ended=True,
        last_at=bench.stored.stored[root][-1].ingest_time,
        parent_id=None,
        is_parent_open=False,
        projected_seq=head.seq,
    )


async def written(
    bench: ReplayBench,
    *execution_ids: int,
    segment_bytes: int = 2000,
    names: Mapping[int, PayloadNames] | None = None,
) -> WrittenArchive:
    """Write executions of a bench to its payload store."""
    facts = [await facts_of(bench, one) for one in execution_ids]
    writer = ArchiveWriter(
        bench.stored, codec(), bench.payloads, HeldPayloads(names), segment_bytes=segment_bytes
    )
    return await writer.write("event_past", SCOPE, facts, lambda _: None)


def archived_log(bench: ReplayBench, archive: WrittenArchive) -> ArchivedLog:
    """Return a log that has only the heads of the archived executions."""
    index = WrittenIndex({one.execution_id: one for one in archive.roots})
    live = EmptiedLog(bench.stored)
    return ArchivedLog(live, index, lambda: nullcontext(bench.payloads), codec())
