"""Benchmark of projections: mirrored events into tables, compared with a plain Faust agent.

The events of several executions are appended to a log of their own and written to a topic as
the mirror writes them; measured processes read it from the beginning. Afterwards the checksum
of every execution is compared with a replay.
"""

from __future__ import annotations

import asyncio
import base64
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from uuid import uuid4

import asyncpg
from aiokafka import AIOKafkaProducer

from streams.app import Log, open_log, open_replay
from streams.app.log import open_pool
from streams.dev.bench.project_process import write_dsn
from streams.dev.bench.replay_fill import fill
from streams.dev.bench.report import BenchReport, Figure, per_second
from streams.dev.bench.table_child import Child, child
from streams.dev.bench.table_options import PARTITIONS, TableProcessOptions
from streams.dev.bench.table_topics import plain_producer, topics
from streams.dev.scratch_database import scratch_database
from streams.events.canonical import millis
from streams.events.model import Root
from streams.kafka.partitions import partition_of_id
from streams.payload.port import Scope
from streams.projector.postgres import PostgresProjections
from streams.replay.port import StoredEvent
from streams.replay.postgres import PostgresStoredLog
from streams.settings import Settings

EXECUTIONS = 40
PAGE = 1000
STOCK_SHARE = 8
"""The plain agent projects one of so many executions: it is slow."""
OURS, STOCK = "streams.dev.bench.project_process", "streams.dev.bench.stock_projector"
LIMIT_S = 1200.0
WARM = 0.1
"""The share of events that is not timed: starts and first fetches."""
Say = Callable[[str], None]


async def bench_project(settings: Settings, folder: Path, *, events: int, say: Say) -> BenchReport:
    """Fill a log and its topic, and project it with one process, with two, and plainly."""
    with tempfile.TemporaryDirectory(prefix="streams-bench-", dir=folder) as temporary:
        async with scratch_database(settings) as own:
            run = _ProjectBench(own, Path(temporary), max(PAGE, events), say)
            async with topics(own.event_store.connection.url, run.topics, compacted=()):
                return await run.measure()


@dataclass(frozen=True, slots=True)
class _Timed:
    events_per_s: float
    equal: int
    """Executions whose checksum is that of the replay."""


class _ProjectBench:
    """One run on a database and topics of its own."""

    def __init__(self, settings: Settings, folder: Path, events: int, say: Say) -> None:
        self._settings, self._folder, self._say = settings, folder, say
        self._each = max(100, events // EXECUTIONS)
        tag = f"noetl.bench.{uuid4().hex[:8]}"
        self.topics = (f"{tag}.all", f"{tag}.few")
        self._ids: list[int] = []
        runtime = settings.runtime
        self._scope = Scope(runtime.tenant_id, runtime.organization_id)

    async def measure(self) -> BenchReport:
        """Measure one process, two, and the plain agent."""
        async with open_log(self._settings, role="bench") as log:
            await self._fill(log)
            schema_id = log.codec.schema_id
        few = self._ids[::STOCK_SHARE]
        one = await self._ours(schema_id, 1)
        two = await self._ours(schema_id, 2)
        stock = await self._stock(schema_id, few)
        figures: dict[str, Figure] = {
            "executions": len(self._ids),
            "events": len(self._ids) * self._each,
            "events_per_s": one.events_per_s,
            "shards": 2,
            "events_per_s_2_shards": two.events_per_s,
            "faust_agent_events": len(few) * self._each,
            "faust_agent_events_per_s": stock.events_per_s,
            "ratio_to_faust_agent": round(one.events_per_s / stock.events_per_s, 2),
            "checksums_equal": one.equal + two.equal + stock.equal,
        }
        expected = 2 * len(self._ids) + len(few)
        faults = [] if figures["checksums_equal"] == expected else ["checksums differ from replay"]
        return BenchReport(figures, tuple(faults))

    async def _fill(self, log: Log) -> None:
        self._say(f"{EXECUTIONS} executions of {self._each} events are appended and mirrored")
        dsn = self._settings.event_store.canonical_connection.dsn("read")
        async with (
            open_pool(dsn, limit_s=self._settings.runtime.call_limit_s) as pool,
            plain_producer(self._settings.event_store.connection.url) as producer,
        ):
            for number in range(EXECUTIONS):
                execution_id = await fill(log, self._scope, self._each)
                self._ids.append(execution_id)
                await self._mirror(pool, producer, execution_id, is_few=number % STOCK_SHARE == 0)

    async def _mirror(
        self, pool: asyncpg.Pool, producer: AIOKafkaProducer, execution_id: int, *, is_few: bool
    ) -> None:
        """Write an execution's events as the mirror does: key, envelope, and headers."""
        partition, key = partition_of_id(execution_id, PARTITIONS), str(execution_id).encode()
        names = self.topics if is_few else self.topics[:1]
        async for one in _stored(pool, execution_id, self._each):
            headers = _headers(one)
            at = millis(one.ingest_time.replace(tzinfo=UTC))
            for name in names:
                await producer.send(
                    name, one.envelope, key, partition=partition, timestamp_ms=at, headers=headers
                )
        await producer.flush()

    async def _ours(self, schema_id: int, shards: int) -> _Timed:
        self._say(f"projecting with {shards} processes")
        total = len(self._ids) * self._each
        base = self._options("project", f"ours-{shards}", self.topics[0], total)
        members = [replace(base, instance=f"shard-{number}") for number in range(shards)]
        return await self._timed(members, OURS, schema_id, self._ids)

    async def _stock(self, schema_id: int, few: Sequence[int]) -> _Timed:
        self._say("projecting with a plain Faust agent")
        options = self._options("project", "stock", self.topics[1], len(few) * self._each)
        return await self._timed([options], STOCK, schema_id, few)

    def _options(self, mode: str, name: str, topic: str, count: int) -> TableProcessOptions:
        return TableProcessOptions(
            mode=mode,
            bootstrap=self._settings.event_store.connection.url,
            group=f"{topic}.{name}",
            topic=topic,
            folder=str(self._folder / name),
            count=count,
        )

    async def _timed(
        self,
        members: Sequence[TableProcessOptions],
        module: str,
        schema_id: int,
        ids: Sequence[int],
    ) -> _Timed:
        database = self._settings.event_store.canonical_connection
        async with open_pool(database.dsn("project")) as pool:
            await PostgresProjections(pool).clear()
        running: list[Child] = []
        async with AsyncExitStack() as opened:
            for one in members:
                home = replace(one, folder=f"{one.folder}-{one.instance}")
                write_dsn(home, database.dsn("project"), schema_id)
                running.append(await opened.enter_async_context(child(home, module)))
            seconds, timed = await _time(running, members[0].count)
        rate = per_second(timed, seconds)
        self._say(f"{rate:,} events/s")
        return _Timed(rate, await self._equal(ids))

    async def _equal(self, ids: Sequence[int]) -> int:
        dsn = self._settings.event_store.canonical_connection.dsn("read")
        query = "SELECT execution_id, state_checksum FROM noetl.execution"
        async with open_pool(dsn) as pool, open_replay(self._settings) as replay:
            live = dict(await pool.fetch(query))
            states = [await replay.state(one, self._scope, use_snapshots=False) for one in ids]
        return sum(live.get(one.execution_id) == one.checksum_of("all") for one in states)


async def _time(running: Sequence[Child], count: int) -> tuple[float, int]:
    """Return the time from a tenth of the events to the last, and how many were handled in it."""

    def handled() -> int:
        return sum(one.handled for one in running)

    await _until(running, lambda: handled() >= WARM * count)
    began, before = time.perf_counter(), handled()
    await _until(running, lambda: handled() >= count)
    return time.perf_counter() - began, handled() - before


async def _until(running: Sequence[Child], fits: Callable[[], bool]) -> None:
    """Wait until what all processes reported together fits; one that ends is an error."""
    waiting = [
        asyncio.ensure_future(one.until(lambda _: fits(), "done", limit_s=LIMIT_S))
        for one in running
    ]
    done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for one in done:
        await one


async def _stored(pool: asyncpg.Pool, execution_id: int, count: int) -> AsyncIterator[StoredEvent]:
    log, after = PostgresStoredLog(pool), 0
    while after < count:
        page = await log.page(
            Root("execution", execution_id), after_seq=after, through_seq=count, limit=PAGE
        )
        for one in page:
            yield one
        after = page[-1].seq


def _headers(one: StoredEvent) -> list[tuple[str, bytes]]:
    return [
        ("seq", str(one.seq).encode()),
        ("position", str(one.position).encode()),
        ("stream_version", str(one.stream_version).encode()),
        ("chain", base64.b64encode(one.chain)),
    ]
