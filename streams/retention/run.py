"""A run of retention: judge, write, verify, detach; partition by partition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from streams.events.codec import Codec
from streams.events.locator import Locator
from streams.events.model import Root
from streams.payload.port import PayloadStore, Scope
from streams.replay.port import StoredPages
from streams.replay.verified import VerifiedLog
from streams.retention.core import Judgement, Stay, judge
from streams.retention.errors import DamagedArchive, NoSuchArchive
from streams.retention.port import (
    Archive,
    ArchivedRoot,
    ExecutionFacts,
    Holdings,
    LogPartition,
    RetentionLog,
    WrittenArchive,
)
from streams.retention.reading import ArchivedPages, SegmentReader
from streams.retention.write import SEGMENT_BYTES, ArchiveWriter

Report = Callable[[str], None]
"""Called with a line of progress."""
_EVERY = 1000


class DatabaseClock(Protocol):
    """The time of the log's database."""

    async def now(self) -> datetime:
        """Return it."""
        ...


class ChangeableLog(RetentionLog, DatabaseClock, Protocol):
    """A log that retention may change."""


@dataclass(frozen=True, slots=True)
class RetentionPorts:
    """What a run needs."""

    log: ChangeableLog
    pages: StoredPages
    codec: Codec
    store: PayloadStore
    holdings: Holdings
    segment_bytes: int = SEGMENT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOutcome:
    """What left a partition, or in a dry run would, and what stays."""

    partition: str
    executions: int
    events: int
    byte_length: int | None = None
    """Size of the archives; None in a dry run."""
    staying: tuple[Stay, ...] = ()
    archives: tuple[int, ...] = ()
    detached_table: str | None = None


@dataclass(slots=True)
class WrittenIndex:
    """Finds executions of archives that the log does not know yet."""

    roots: dict[int, ArchivedRoot] = field(default_factory=dict)

    async def find(self, execution_id: int) -> ArchivedRoot | None:
        """Return where an execution's events are."""
        return self.roots.get(execution_id)


async def plan(log: ChangeableLog) -> Sequence[PartitionOutcome]:
    """Return what a run would archive, without changes."""
    return [
        _outcome(partition, judged) async for partition, judged in _judged(log) if _is_used(judged)
    ]


async def run(ports: RetentionPorts, report: Report) -> Sequence[PartitionOutcome]:
    """Archive whatever policies allow; return one outcome for each partition with executions.

    Raises:
        TamperedLog: an event is not what was appended; its partition stays as it is.
        NotArchivable: an execution lacks a payload, or changed meanwhile.
        DamagedArchive: an object is not what was just written.
        Unavailable: log, mirror or payload store are late or down; running again is safe.
    """
    outcomes = []
    async for partition, judged in _judged(ports.log):
        if judged.leaving:
            outcomes.append(await _archive(ports, partition, judged, report))
        elif judged.staying:
            outcomes.append(_outcome(partition, judged))
    return outcomes


async def drop(ports: RetentionPorts, archive_id: int, *, dry_run: bool, report: Report) -> Archive:
    """Drop the detached table of an archive, after all archives of it were read again.

    Raises:
        NoSuchArchive: there is none with this number.
        DamagedArchive, TamperedLog: an object is not what was written; nothing was dropped.
        Unavailable: log or payload store cannot be reached.
    """
    archives = await ports.log.archives()
    found = next((one for one in archives if one.archive_id == archive_id), None)
    if found is None:
        raise NoSuchArchive(archive_id)
    if found.dropped_at is not None or dry_run:
        return found
    for one in archives:
        if one.detached_table == found.detached_table:
            roots = [root async for root in ports.log.roots_of(one.archive_id)]
            await verify(ports.store, ports.codec, roots)
            report(f"archive {one.archive_id}: {len(roots)} executions verified")
    await ports.log.drop(found.detached_table)
    return found


async def verify(store: PayloadStore, codec: Codec, roots: Iterable[ArchivedRoot]) -> None:
    """Read archived executions: each checksum, and the chain up to the head's.

    Raises:
        DamagedArchive, TamperedLog: an object is not what was written.
    """
    roots = list(roots)
    index = WrittenIndex({one.execution_id: one for one in roots})
    pages = ArchivedPages(index, SegmentReader(lambda: nullcontext(store)))
    events = VerifiedLog(pages, codec)
    for one in roots:
        chain = ""
        async for page in events.pages(Root("execution", one.execution_id), through_seq=one.seq):
            chain = page[-1].chain
        if chain != one.chain.hex():
            tenant, organization = one.scope.tenant_id, one.scope.organization_id
            uri = str(Locator.payload(tenant, organization, one.pieces[-1].segment))
            raise DamagedArchive(uri, f"its events do not end execution {one.execution_id}")


async def _judged(log: ChangeableLog) -> AsyncIterator[tuple[LogPartition, Judgement]]:
    policies, now = await log.policies(), await log.now()
    for partition in await log.partitions():
        yield partition, judge(await log.facts(partition), policies, now)


async def _archive(
    ports: RetentionPorts, partition: LogPartition, judged: Judgement, report: Report
) -> PartitionOutcome:
    await ports.log.mirrored()
    by_scope: dict[Scope, list[ExecutionFacts]] = {}
    for one in judged.leaving:
        by_scope.setdefault(one.scope, []).append(one)
    writer = ArchiveWriter(
        ports.pages, ports.codec, ports.store, ports.holdings, segment_bytes=ports.segment_bytes
    )
    written: list[WrittenArchive] = []
    for scope, leaving in by_scope.items():
        show = _progress(f"{partition.name}: written", len(leaving), report)
        written.append(await writer.write(partition.name, scope, leaving, show))
    for archive in written:
        await verify(ports.store, ports.codec, archive.roots)
    report(f"{partition.name}: {len(judged.leaving)} executions verified in the payload store")
    numbers = await ports.log.detach(partition, written)
    return PartitionOutcome(
        partition=partition.name,
        executions=len(judged.leaving),
        events=sum(one.events for one in written),
        byte_length=sum(one.byte_length for one in written),
        staying=judged.staying,
        archives=tuple(numbers),
        detached_table=f"{partition.name}_{numbers[0]}",
    )


def _progress(what: str, total: int, report: Report) -> Callable[[int], None]:
    def show(done: int) -> None:
        if done % _EVERY == 0 or done == total:
            report(f"{what} {done} of {total} executions")

    return show


def _outcome(partition: LogPartition, judged: Judgement) -> PartitionOutcome:
    return PartitionOutcome(
        partition=partition.name,
        executions=len(judged.leaving),
        events=sum(one.seq for one in judged.leaving),
        staying=judged.staying,
    )


def _is_used(judged: Judgement) -> bool:
    return bool(judged.leaving or judged.staying)
