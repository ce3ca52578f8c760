"""A race of writers against the collector: it must delete exactly the orphans."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import uuid4

import orjson

from streams.app import Log, open_log, open_shelves
from streams.collector.collect import CollectionReport as Collected
from streams.collector.collect import collect
from streams.collector.port import CollectorPorts
from streams.collector.postgres import open_ledger
from streams.dev.bench.report import BenchReport
from streams.dev.bench.s3 import scratch_bucket
from streams.dev.scratch_database import scratch_database
from streams.events.model import NewEvent, PayloadRef, Root
from streams.events.types import (
    AnyEvent,
    PlaybookCompleted,
    PlaybookInitialized,
    ResultStored,
    ResultStoredScope,
)
from streams.payload.content import key_of, reference_json
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.objects.blocks import BLOCK_BYTES
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore
from streams.settings import Settings

GRACE = timedelta(seconds=3)
_SHARED, _SMALL, _STREAMED = 30, 10, 5
_ACME = Scope("acme", "care")
_ORPHANS_GONE_S = 300.0


@dataclass(slots=True)
class WriterTally:
    """Counts and faults of the writers."""

    executions: int = 0
    abandoned: int = 0
    nested: int = 0
    reads: int = 0
    lost: list[str] = field(default_factory=list)
    permanent: dict[PayloadRef, bytes] = field(default_factory=dict)


async def bench_collect(
    settings: Settings,
    *,
    seconds: float,
    writers: int,
    grace: timedelta = GRACE,
    say: Callable[[str], None],
) -> BenchReport:
    """Let writers store, reference and drop payloads while a collector runs, then check.

    Contents are few, so that writers store again what is being removed; some are so large that
    a writer skips those that exist already, and some are streamed. Some are stored and never
    referenced, or referenced only inside another payload; some executions wait for longer than
    the grace before they reference theirs.
    """
    tally, known = WriterTally(), grace / 3
    runs: list[Collected] = []
    async with (
        scratch_database(settings) as database,
        scratch_bucket(database) as own,
        open_log(own, role="bench", lanes=2) as log,
        open_ledger(own.event_store.canonical_connection.dsn("collect")) as ledger,
        open_shelves(own) as shelves,
    ):
        ports = CollectorPorts(ledger, log.store, shelves)
        stores = [
            ContentStore(shelves, compression="zstd", known_s=known.total_seconds())
            for _ in range(3)
        ]
        until = time.monotonic() + seconds
        say(f"{writers} writers against a collector for {seconds:g} s")
        working = [
            asyncio.create_task(_write(log, random.Random(n), stores[n % 3], tally, until, grace))  # noqa: S311
            for n in range(writers)
        ]
        while not all(task.done() for task in working):
            runs.append(await collect(ports, grace=grace, known=known, claim=True))
        await asyncio.gather(*working)
        say(f"{tally.executions:,} executions, {len(runs)} collections; waiting for the rest to go")
        until = time.monotonic() + _ORPHANS_GONE_S
        while time.monotonic() < until:
            runs.append(last := await collect(ports, grace=grace, known=known, claim=True))
            if not (last.orphans or last.in_trash or last.purged or last.expired):
                break
            await asyncio.sleep(0.5)
        for ref, content in tally.permanent.items():
            await _check(stores[0], ref, content, tally, "at the end")
    return _report(tally, runs)


def _report(tally: WriterTally, runs: list[Collected]) -> BenchReport:
    last = runs[-1]
    dangling = max(run.dangling_count for run in runs)
    orphans = last.orphans + last.in_trash
    faults = list(tally.lost[:10])
    if dangling:
        faults.append(f"a collection found {dangling} references without an object")
    if orphans:
        faults.append(f"{orphans} orphans remain")
    if not (restored := sum(run.restored for run in runs)):
        faults.append("nothing was restored from the trash: writers did not meet the collector")
    figures: dict[str, float] = {
        "executions": tally.executions,
        "abandoned_puts": tally.abandoned,
        "nested": tally.nested,
        "reads": tally.reads,
        "collections": len(runs),
        "expired": sum(sum(run.expired.values()) for run in runs),
        "trashed": sum(run.trashed for run in runs),
        "restored": restored,
        "purged": sum(run.purged for run in runs),
        "live_objects": last.live,
        "live_removed": len(tally.lost) + dangling,
        "orphans_left": orphans,
    }
    return BenchReport(figures=figures, faults=tuple(faults))


async def _write(
    log: Log,
    luck: random.Random,
    store: ContentStore,
    tally: WriterTally,
    until: float,
    grace: timedelta,
) -> None:
    while time.monotonic() < until:
        shared = luck.random() < 0.8
        content = _content(luck.randrange(_SHARED)) if shared else os.urandom(400)
        if luck.random() < 0.2:
            await _store(store, content)
            tally.abandoned += 1
        else:
            await _execution(log, luck, store, content, tally, grace)


async def _execution(
    log: Log,
    luck: random.Random,
    store: ContentStore,
    content: bytes,
    tally: WriterTally,
    grace: timedelta,
) -> None:
    root, result_id = Root("execution", log.ids.next()), log.ids.next()
    permanent = luck.random() < 0.01
    scopes: list[ResultStoredScope] = ["permanent"] if permanent else ["execution", "step"]
    started = PlaybookInitialized(path="bench/collect", version=1)
    await log.store.append([_event(root, started)])
    ref = named = await _store(store, content)
    if luck.random() < 0.3:
        around = {"result": result_id, "holds": reference_json(ref)}
        named = await _store(store, orjson.dumps(around))
        tally.nested += 1
    await asyncio.sleep(_pause(luck, grace))
    stored = ResultStored(
        node_name="store",
        result_id=result_id,
        store="object",
        scope=luck.choice(scopes),
        payload_ref=named,
    )
    await log.store.append([_event(root, stored)])
    await _check(store, ref, content, tally, "just named")
    await asyncio.sleep(luck.random() * 0.2)
    await _check(store, ref, content, tally, "referenced earlier")
    await log.store.append([_event(root, PlaybookCompleted(status="COMPLETED"))])
    await _check(store, ref, content, tally, "just ended")
    tally.executions += 1
    if permanent:
        tally.permanent[ref] = content


def _pause(luck: random.Random, grace: timedelta) -> float:
    """Return the delay before a writer references a payload; rarely longer than the grace."""
    if luck.random() < 0.05:
        return 2.5 * grace.total_seconds()
    return luck.random() * grace.total_seconds() / 10


async def _check(
    store: ContentStore, ref: PayloadRef, content: bytes, tally: WriterTally, when: str
) -> None:
    tally.reads += 1
    try:
        if await store.get(ref) == content:
            return
        why = "other bytes"
    except (PayloadMissing, PayloadCorrupt) as error:
        why = type(error).__name__
    tally.lost.append(f"{key_of(ref)} {when}: {why}")


@lru_cache(maxsize=_SHARED)
def _content(number: int) -> bytes:
    """Return a content: the first are small, the last are large enough to be streamed."""
    if number < _SMALL:
        return f"content {number} ".encode() * (1 + number * number * 100)
    length = 300_000 if number < _SHARED - _STREAMED else BLOCK_BYTES + 100_000
    return random.Random(number).randbytes(length)  # noqa: S311


async def _store(store: ContentStore, content: bytes) -> PayloadRef:
    if len(content) <= BLOCK_BYTES:
        return await store.put(_ACME, content, media_type=JSON)
    return await store.store(_ACME, _pieces(content), media_type=JSON)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), BLOCK_BYTES):
        yield content[at : at + BLOCK_BYTES]


def _event(root: Root, event: AnyEvent) -> NewEvent:
    return NewEvent(
        root=root,
        tenant_id=_ACME.tenant_id,
        organization_id=_ACME.organization_id,
        idempotency_key=f"{event.TYPE}/{uuid4().hex}",
        event_time=datetime.now(UTC),
        **event.columns(),
    )
