"""Rebuild of the event topics from the log.

The order of the steps makes a crash after any of them harmless: once the slot is dropped the
connector refuses to run until its offsets are deleted, too, and by then the topics are new and
empty. Running it again starts over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from streams.errors import Inconsistent, Refused, Unavailable
from streams.kafka.names import EVENTS_PREFIX
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorUnknown
from streams.mirror.guard import REBUILD_LOCK, SLOT
from streams.mirror.refill import TOTAL, Progress, Refill, Report
from streams.mirror.setup import MIRROR, mirror_config
from streams.mirror.tally import MirrorVerdict
from streams.postgres import connecting
from streams.resources import folder
from streams.settings import Settings
from streams.topology import Topology, load
from streams.topology.broker import TopicAdmin

_PAUSE_S = 0.1
_LOCK = "SELECT pg_try_advisory_lock($1, $2)"
_DROP_SLOT = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1"
)


class MirrorDiffers(Inconsistent):
    """The event topics differ from the log."""

    def __init__(self, verdict: MirrorVerdict) -> None:
        super().__init__(
            f"the event topics differ from the log: {verdict.lost_count} lost, "
            f"{verdict.doubled_count} doubled or out of order ({verdict.first}); "
            "run `streams mirror rebuild`; an interrupted refill starts over"
        )
        self.verdict = verdict


class RebuildRunning(Refused):
    """Another rebuild of the mirror is running."""


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """The topics and events that a rebuild would write."""

    topics: tuple[str, ...]
    events_count: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The outcome of a rebuild; `verdict` is None without verification."""

    events_count: int
    seconds: float
    by_topic: dict[str, int]
    verdict: MirrorVerdict | None


async def plan_rebuild(settings: Settings) -> RebuildPlan:
    """Return what `rebuild` would do, without changes."""
    async with _database(settings) as database:
        total = await database.fetchval(TOTAL)
    return RebuildPlan(_event_topics(load(folder("topics"))), total)


async def rebuild(
    settings: Settings, report: Report, *, verify: bool = True, stall_s: float = 120.0
) -> Rebuilt:
    """Recreate the event topics, refill them from the log, and return when they caught up.

    Concurrent appends are mirrored too, each once and in order.

    Raises:
        RebuildRunning: another rebuild is running.
        MirrorDiffers: the topics differ from the log; run it again.
        Unavailable: Postgres, Kafka or Connect does not respond, or the refill stalled.
    """
    started = time.monotonic()
    bootstrap = settings.event_store.connection.url
    broker, topology = TopicAdmin(bootstrap), load(folder("topics"))
    topics = _event_topics(topology)
    async with (
        _database(settings) as database,
        ConnectClient(settings.connect.url) as connect,
    ):
        if not await database.fetchval(_LOCK, *REBUILD_LOCK):
            raise RebuildRunning("another rebuild is running; wait for its end")
        report(Progress("stopping the connector"))
        await _stop(connect, settings)
        report(Progress("dropping the slot"))
        await _drop_slot(database)
        report(Progress("deleting the event topics"))
        await asyncio.to_thread(broker.delete, topics)
        report(Progress("creating the event topics"))
        await asyncio.to_thread(lambda: broker.apply(topology.at(broker.profile())))
        report(Progress("deleting the connector's offsets"))
        await connect.delete_offsets(MIRROR)
        report(Progress("starting the connector"))
        await connect.resume(MIRROR)
        await connect.wait_until_running(MIRROR)
        refill = Refill(settings, database, connect, topics, report, stall_s)
        tally, verdict = await refill.run(verify=verify)
    if verdict is not None and not verdict.is_clean:
        raise MirrorDiffers(verdict)
    counts = {topic: tally.by_type[topic.removeprefix(EVENTS_PREFIX)] for topic in topics}
    return Rebuilt(tally.records_count, time.monotonic() - started, counts, verdict)


async def verify(settings: Settings, report: Report) -> MirrorVerdict:
    """Read every event topic and compare it with the log, root by root."""
    topology = load(folder("topics"))
    async with (
        _database(settings) as database,
        ConnectClient(settings.connect.url) as connect,
    ):
        topics = _event_topics(topology)
        refill = Refill(settings, database, connect, topics, report, stall_s=60.0)
        _, verdict = await refill.run(verify=True)
    assert verdict is not None
    return verdict


async def _stop(connect: ConnectClient, settings: Settings) -> None:
    """Stop the connector, with the configuration for the refill."""
    try:
        await connect.stop(MIRROR)
    except ConnectorUnknown:
        # Connect deletes offsets only of a connector that exists.
        await connect.apply(MIRROR, mirror_config(settings))
        await connect.stop(MIRROR)
    await connect.wait_until_stopped(MIRROR)
    await connect.apply(MIRROR, mirror_config(settings))


async def _drop_slot(database: asyncpg.Connection, *, timeout_s: float = 30.0) -> None:
    """Drop the slot; its reader may take a moment to disconnect."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            await database.execute(_DROP_SLOT, SLOT)
        except asyncpg.ObjectInUseError as error:
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"replication slot {SLOT} is still in use ({error}); end its reader "
                    "(pg_stat_replication has it), then run it again"
                ) from error
            await asyncio.sleep(_PAUSE_S)
        except asyncpg.UndefinedObjectError:
            return  # dropped concurrently
        else:
            return


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
