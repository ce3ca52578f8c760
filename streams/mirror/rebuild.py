"""Refilling the event topics from the log, in order, so that nothing is lost or doubled.

The steps are in an order in which dying after any of them is harmless: from the moment the
slot is gone the connector refuses to run, until its offsets are gone, too, and by then the
topics are new and empty. Running it again begins again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
from confluent_kafka import KafkaError, KafkaException

from streams.errors import Inconsistent, Refused, Unavailable
from streams.events.model import Root
from streams.kafka.clients import admin, reason
from streams.kafka.errors import BrokerUnavailable
from streams.kafka.event_reader import Reader, Record
from streams.kafka.names import EVENTS_PREFIX
from streams.mirror.connect import Connect, ConnectorFailed, ConnectorUnknown, ConnectUnavailable
from streams.mirror.guard import REBUILD_LOCK, SLOT
from streams.mirror.setup import MIRROR, mirror_config
from streams.mirror.tally import Tally, Verdict
from streams.mirror.watermark import MirrorBehind, Watermark
from streams.postgres import connecting
from streams.resources import folder
from streams.settings import Settings
from streams.topology import Topology, load
from streams.topology.broker import Broker

_PAUSE_S = 0.1
_REPORT_S = 1.0
_TOTAL = "SELECT coalesce(sum(seq), 0)::bigint FROM noetl.root_head"
_HEADS = "SELECT root_type, root_id, seq, ingest_time FROM noetl.root_head WHERE seq > 0"
_INGESTED = "SELECT ingest_time FROM noetl.event WHERE root_id = $1 AND seq = $2"
_HOLD = "SELECT pg_try_advisory_lock($1, $2)"
_RELEASE_SLOT = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
_SLOT_READY = "SELECT confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots "
_OF_SLOT = "WHERE slot_name = $1"


class MirrorDiffers(Inconsistent):
    """The event topics do not hold what the log holds."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(
            f"the event topics differ from the log: {verdict.lost_count} lost, "
            f"{verdict.doubled_count} doubled or out of order ({verdict.first}); "
            "run `streams mirror rebuild`, again if need be: an interrupted refill begins anew"
        )
        self.verdict = verdict


class RebuildRunning(Refused):
    """Somebody else rebuilds the mirror at this moment."""


class RebuildStalled(Unavailable):
    """The refill makes no progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A step that has begun, or how far the refill has come."""

    step: str
    mirrored_count: int = 0
    total_count: int = 0

    def __str__(self) -> str:
        if not self.total_count:
            return self.step
        return f"{self.step}: {self.mirrored_count:,} of {self.total_count:,} events"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a rebuild would do."""

    topics: tuple[str, ...]
    events_count: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did; `verdict` is None when nobody wanted to know."""

    events_count: int
    seconds: float
    by_topic: dict[str, int]
    verdict: Verdict | None


Report = Callable[[Progress], None]


async def outlook(settings: Settings) -> Outlook:
    """Say what `rebuild` would do; nothing is changed."""
    async with _database(settings) as database:
        total = await database.fetchval(_TOTAL)
    return Outlook(_event_topics(load(folder("topics"))), total)


async def rebuild(
    settings: Settings, report: Report, *, verify: bool = True, stall_s: float = 120.0
) -> Rebuilt:
    """Empty the event topics, refill them from the log, and return when they are level.

    Appends go on meanwhile and arrive, each once, in order.

    Raises:
        RebuildRunning: another rebuild holds the mirror.
        MirrorDiffers: the topics are not what the log says; run it again.
        Unavailable: Postgres, Kafka or Connect does not answer, or nothing moves any more.
    """
    began = time.monotonic()
    bootstrap = settings.event_store.connection.url
    broker, topology = Broker(bootstrap), load(folder("topics"))
    topics = _event_topics(topology)
    async with (
        _database(settings) as database,
        Connect(settings.connect.url) as connect,
    ):
        if not await database.fetchval(_HOLD, *REBUILD_LOCK):
            raise RebuildRunning("another rebuild is running; wait until it has ended")
        report(Progress("stopping the connector"))
        await _stop(connect, settings)
        report(Progress("dropping the slot"))
        await _drop_slot(database)
        report(Progress("deleting the event topics"))
        await asyncio.to_thread(delete_topics, bootstrap, topics)
        report(Progress("creating the event topics"))
        await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))
        report(Progress("forgetting the connector's offsets"))
        await connect.delete_offsets(MIRROR)
        report(Progress("starting the connector"))
        await connect.resume(MIRROR)
        await connect.wait_until_running(MIRROR)
        refill = _Refill(settings, database, connect, topics, report, stall_s)
        tally, verdict = await refill.run(verify=verify)
    if verdict is not None and not verdict.is_clean:
        raise MirrorDiffers(verdict)
    counts = {topic: tally.by_type[topic.removeprefix(EVENTS_PREFIX)] for topic in topics}
    return Rebuilt(tally.records_count, time.monotonic() - began, counts, verdict)


async def verify(settings: Settings, report: Report) -> Verdict:
    """Read every event topic and compare it with the log, root by root."""
    topology = load(folder("topics"))
    async with (
        _database(settings) as database,
        Connect(settings.connect.url) as connect,
    ):
        topics = _event_topics(topology)
        refill = _Refill(settings, database, connect, topics, report, stall_s=60.0)
        _, verdict = await refill.run(verify=True)
    assert verdict is not None
    return verdict


class _Refill:
    """Reads the topics while they fill: that is progress and proof in one pass."""

    def __init__(
        self,
        settings: Settings,
        database: asyncpg.Connection,
        connect: Connect,
        topics: tuple[str, ...],
        report: Report,
        stall_s: float,
    ) -> None:
        self._settings, self._database, self._connect = settings, database, connect
        self._topics, self._report, self._stall_s = topics, report, stall_s
        self._tally = Tally()
        self._moved_at = time.monotonic()

    async def run(self, *, verify: bool) -> tuple[Tally, Verdict | None]:
        bootstrap = self._settings.event_store.connection.url
        dsn = self._settings.event_store.canonical_connection.dsn("append")
        total = await self._database.fetchval(_TOTAL)
        async with Reader(bootstrap, self._topics) as reader, Watermark(dsn, bootstrap) as mark:
            level = asyncio.create_task(self._level(mark))
            try:
                await self._follow(reader, level, total)
            finally:
                level.cancel()
                await asyncio.gather(level, return_exceptions=True)
            if not verify:
                return self._tally, None
            # What was appended during the refill is judged, too.
            heads = await self._database.fetch(_HEADS)
            await mark.catch_up(timeout_s=self._stall_s)
            async for batch in reader.to_end():
                self._count(batch)
        return self._tally, await self._judge(heads)

    async def _follow(self, reader: Reader, level: asyncio.Task[None], total: int) -> None:
        """Count until the mirror is level with the log, and then what is there."""
        told = time.monotonic()
        while not level.done():
            self._count(await reader.batch())
            if time.monotonic() - told >= _REPORT_S:
                told = time.monotonic()
                self._tell(total)
            if time.monotonic() - self._moved_at > self._stall_s:
                raise RebuildStalled(
                    f"nothing has been mirrored for {self._stall_s:.0f} s "
                    f"({self._tally.records_count:,} of {total:,} events are there); "
                    "`streams mirror check` says why; then run it again"
                )
        level.result()
        async for batch in reader.to_end():
            self._count(batch)
        self._tell(total)

    def _tell(self, total: int) -> None:
        self._report(Progress("refilling", self._tally.records_count, total))

    def _count(self, batch: list[Record]) -> None:
        for record in batch:
            self._tally.add(*_place(record))
            self._moved_at = time.monotonic()

    async def _level(self, mark: Watermark) -> None:
        """Return once a watermark written behind the refill has come through."""
        while True:
            # A mark that is written before there is a slot would never come.
            if not await self._database.fetchval(_SLOT_READY + _OF_SLOT, SLOT):
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                await mark.catch_up(timeout_s=10.0)
            except MirrorBehind:
                await self._see_it_run()
            else:
                return

    async def _see_it_run(self) -> None:
        """Let a restart of Connect pass; a connector that gave up ends the rebuild."""
        with suppress(ConnectUnavailable, ConnectorUnknown):
            failure = (await self._connect.status(MIRROR)).failure
            if failure is not None:
                raise ConnectorFailed(
                    f"the refill failed: {failure}; correct the cause, then run it again"
                )

    async def _judge(self, heads: list[asyncpg.Record]) -> Verdict:
        newest = {Root(row["root_type"], row["root_id"]): row["seq"] for row in heads}
        times = {Root(row["root_type"], row["root_id"]): row["ingest_time"] for row in heads}
        kept_since = {
            topic.name.removeprefix(EVENTS_PREFIX): _now() - _kept(topic.retention_ms)
            for topic in load(folder("topics")).topics
            if topic.name in self._topics and topic.retention_ms >= 0
        }
        expired: dict[Root, int] = {}
        for root, seq in newest.items():
            since = kept_since.get(root.type)
            if since is None:
                continue
            if times[root] < since:
                # All of it may be gone; what is still there only has to be in order.
                expired[root] = seq
            elif (start := self._tally.beheaded.get(root)) is not None:
                before = await self._database.fetchval(_INGESTED, root.id, start - 1)
                expired[root] = start - 1 if before is not None and before < since else 0
        return self._tally.against(newest, expired)


def _place(record: Record) -> tuple[Root, int]:
    """Say whose event a record is, and which; its value need not be decoded for that."""
    headers = dict(record.headers)
    root = Root(record.topic.removeprefix(EVENTS_PREFIX), int(record.key or b"0"))
    return root, int(headers.get("seq") or b"0")


async def _stop(connect: Connect, settings: Settings) -> None:
    """Stop the connector, with the configuration that the refill shall have."""
    try:
        await connect.stop(MIRROR)
    except ConnectorUnknown:
        # Connect forgets offsets only of a connector that it knows.
        await connect.apply(MIRROR, mirror_config(settings))
        await connect.stop(MIRROR)
    await connect.wait_until_stopped(MIRROR)
    await connect.apply(MIRROR, mirror_config(settings))


async def _drop_slot(database: asyncpg.Connection, *, timeout_s: float = 30.0) -> None:
    """Drop the slot; its last reader may take a moment to leave it."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            await database.execute(_RELEASE_SLOT + _OF_SLOT, SLOT)
        except asyncpg.ObjectInUseError as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"replication slot {SLOT} is still in use ({error}); end its reader "
                    "(pg_stat_replication has it), then run it again"
                ) from error
            await asyncio.sleep(_PAUSE_S)
        except asyncpg.UndefinedObjectError:
            return  # somebody else dropped it in the same moment
        else:
            return


def delete_topics(bootstrap: str, topics: tuple[str, ...], *, timeout_s: float = 60.0) -> None:
    """Delete topics and return when no broker lists them any more; this blocks.

    Raises:
        BrokerUnavailable: they are still there after `timeout_s`.
    """
    client = admin(bootstrap)
    deadline = time.monotonic() + timeout_s
    try:
        for topic, future in client.delete_topics(list(topics), operation_timeout=30).items():
            try:
                future.result(timeout=timeout_s)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise BrokerUnavailable(
                        f"{bootstrap}: cannot delete {topic}: {reason(error)}"
                    ) from error
        while left := set(topics) & set(client.list_topics(timeout=timeout_s).topics):
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"{bootstrap}: {min(left)} is still there {timeout_s:.0f} s after its "
                    "deletion; see that every broker is up, then run it again"
                )
            time.sleep(_PAUSE_S)
    except KafkaException as error:
        raise BrokerUnavailable(f"{bootstrap}: {reason(error)}; run it again") from error


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    dsn = settings.event_store.canonical_connection.dsn("mirror")
    with connecting(Unavailable):
        connection = await asyncpg.connect(dsn, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


def _event_topics(topology: Topology) -> tuple[str, ...]:
    return tuple(t.name for t in topology.topics if t.name.startswith(EVENTS_PREFIX))


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _kept(retention_ms: int) -> timedelta:
    return timedelta(milliseconds=retention_ms)
