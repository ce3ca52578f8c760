"""Benchmark of the mirror's throughput, latency and exactness.

Throughput: rows are written while the connector is stopped, and the time from the first to
the last record that a read_committed consumer gets is measured. The baseline is the same
Debezium, exactly-once too, on a plain table of an id and the same bytes, with defaults: no
transforms, change events in JSON without schemas.
Latency: 500 events a second; from the time Postgres took an event in (before its commit, so
the figure includes the commit) until the consumer has it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from uuid import uuid4

import asyncpg

from streams.app import Log, open_log
from streams.dev.bench.kafka_receiver import Received, Receiver
from streams.dev.bench.report import BenchReport, middle, per_second, percentile
from streams.dev.bench.workload import frame_commits
from streams.errors import Unavailable
from streams.mirror.connect import ConnectClient
from streams.mirror.setup import MIRROR, mirror_config
from streams.settings import Settings

TOPIC = "noetl.events.execution"
ROOTS, BATCH = 64, 500
RATE_PER_S, LATENCY_BATCH = 500, 5
TIMEOUT_S = 120.0
SHORTEST_SPAN_S = 0.001
SLOT_ACTIVE = "SELECT active FROM pg_replication_slots WHERE slot_name = $1"
DROP_SLOT = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1"
)

Say = Callable[[str], None]


class PlainIncomplete(Unavailable):
    """The baseline could not be measured."""

    def __init__(self, got: int, expected: int) -> None:
        super().__init__(
            f"Debezium mirrored {got} of {expected} rows of the plain table within "
            f"{TIMEOUT_S:.0f} s; see the log of Connect"
        )


async def bench_mirror(
    settings: Settings, *, events: int, rounds: int, seconds: int, say: Say
) -> BenchReport:
    """Run the bench on the stack that `settings` name."""
    found, lost, doubled = [], 0, 0
    async with (
        ConnectClient(settings.connect.url) as connect,
        open_log(settings, role="bench") as log,
    ):
        for number in range(1, rounds + 1):
            rate, tally = await _mirror_round(settings, connect, log, events)
            plain = await _plain_round(settings, connect, events)
            found.append({"events_per_s": rate, "plain_rows_per_s": plain})
            lost, doubled = lost + tally[0], doubled + tally[1]
            say(f"round {number} of {rounds}: {rate:,.0f} events/s, plain {plain:,.0f} rows/s")
        latencies, tally = await _latency(settings, log, seconds)
        lost, doubled = lost + tally[0], doubled + tally[1]
    figures = middle(found)
    ratio = figures["events_per_s"] / figures["plain_rows_per_s"]
    faults = [f"{lost} events lost"] if lost else []
    faults += [f"{doubled} events doubled"] if doubled else []
    return BenchReport(
        {
            **figures,
            "ratio_to_plain": round(ratio, 3),
            "p50_ms": percentile(latencies, 50),
            "p99_ms": percentile(latencies, 99),
            "lost": lost,
            "doubled": doubled,
        },
        tuple(faults),
    )


async def _mirror_round(
    settings: Settings, connect: ConnectClient, log: Log, events: int
) -> tuple[float, tuple[int, int]]:
    commits = frame_commits(log.ids.next, events=events, roots=ROOTS)
    with Receiver(settings.event_store.connection.url, [TOPIC]) as receiver:
        await connect.stop(MIRROR)
        try:
            await connect.wait_until_stopped(MIRROR)
            sent = []
            for start in range(0, events, BATCH):
                receipt = await log.store.append(commits[start : start + BATCH])
                sent += [str(appended.event_id) for appended in receipt.events]
        finally:
            await connect.resume(MIRROR)
        await connect.wait_until_running(MIRROR)
        got = await receiver.collect(events, give_up_after_s=TIMEOUT_S)
    return receive_rate(got), _tally(sent, got)


async def _plain_round(settings: Settings, connect: ConnectClient, events: int) -> float:
    """Return Debezium's rate on a plain table with rows of the same size."""
    name = f"bench_{uuid4().hex[:8]}"
    database = await asyncpg.connect(settings.event_store.canonical_connection.dsn("owner"))
    try:
        await database.execute(
            f"CREATE TABLE {name} (id bigint PRIMARY KEY, payload bytea NOT NULL);"
            f"CREATE PUBLICATION {name} FOR TABLE {name} WITH (publish = 'insert');"
            f"GRANT SELECT ON {name} TO noetl_mirror"
        )
        bootstrap = settings.event_store.connection.url
        with Receiver(bootstrap, [f"{name}.public.{name}"], create=True) as receiver:
            await connect.apply(name, _plain_config(settings, name))
            await connect.wait_until_running(name)
            await _slot_becomes(database, name, active=True)
            # Without a first row it would have no offset, and start after the next rows.
            await database.execute(f"INSERT INTO {name} VALUES (0, 'first')")  # noqa: S608
            await receiver.collect(1, give_up_after_s=TIMEOUT_S)
            await connect.stop(name)
            await connect.wait_until_stopped(name)
            await database.execute(
                f"INSERT INTO {name} SELECT number, (SELECT envelope FROM noetl.event LIMIT 1) "  # noqa: S608
                "FROM generate_series(1, $1::bigint) number",
                events,
            )
            await connect.resume(name)
            await connect.wait_until_running(name)
            got = await receiver.collect(events, give_up_after_s=TIMEOUT_S)
    finally:
        await connect.delete(name)
        await _drop(settings, database, name)
        await database.close()
    if len(got) != events:
        raise PlainIncomplete(len(got), events)
    return receive_rate(got)


def _plain_config(settings: Settings, name: str) -> dict[str, str]:
    keep = ("connector.", "tasks.", "exactly.", "transaction.", "poll.", "producer.", "database.")
    more = ("plugin.", "max.", "offset.", "errors.")
    config = {k: v for k, v in mirror_config(settings).items() if k.startswith((*keep, *more))}
    return config | {
        "slot.name": name,
        "slot.drop.on.stop": "false",
        "publication.name": name,
        "publication.autocreate.mode": "disabled",
        "topic.prefix": name,
        "table.include.list": f"public.{name}",
        "snapshot.mode": "no_data",
        # The mirror's heartbeats reach every slot of the database.
        "message.prefix.exclude.list": ".*",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }


async def _slot_becomes(database: asyncpg.Connection, name: str, *, active: bool) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        # Postgres has no notification for a slot's activity.
        while bool(await database.fetchval(SLOT_ACTIVE, name)) is not active:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _drop(settings: Settings, database: asyncpg.Connection, name: str) -> None:
    await _slot_becomes(database, name, active=False)
    # Only the mirror's role may handle slots.
    mirror = await asyncpg.connect(settings.event_store.canonical_connection.dsn("mirror"))
    try:
        await mirror.execute(DROP_SLOT, name)
    finally:
        await mirror.close()
    await database.execute(f"DROP PUBLICATION IF EXISTS {name}; DROP TABLE IF EXISTS {name}")


async def _latency(
    settings: Settings, log: Log, seconds: int
) -> tuple[list[float], tuple[int, int]]:
    commits = frame_commits(log.ids.next, events=RATE_PER_S * seconds, roots=ROOTS)
    sent: dict[str, float] = {}
    with Receiver(settings.event_store.connection.url, [TOPIC]) as receiver:
        receiving = asyncio.create_task(receiver.collect(len(commits), give_up_after_s=TIMEOUT_S))
        started = time.perf_counter()
        for start in range(0, len(commits), LATENCY_BATCH):
            due = started + start / RATE_PER_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            receipt = await log.store.append(commits[start : start + LATENCY_BATCH])
            for appended in receipt.events:
                sent[str(appended.event_id)] = appended.ingest_time.timestamp()
        got = await receiving
    waits = [1000 * (one.at - sent[one.event_id]) for one in got if one.event_id in sent]
    return sorted(waits), _tally(list(sent), got)


def receive_rate(got: list[Received]) -> float:
    """Return the records per second after the first one."""
    if len(got) < 2:
        return 0.0
    # All records of one poll have the same time; a small sample may be one poll.
    return per_second(len(got) - 1, max(got[-1].monotonic - got[0].monotonic, SHORTEST_SPAN_S))


def _tally(sent: list[str], got: list[Received]) -> tuple[int, int]:
    """Return the numbers of lost and of duplicate records."""
    times = Counter(one.event_id for one in got)
    return sum(1 for one in sent if one not in times), sum(
        times[one] - 1 for one in sent if one in times
    )
