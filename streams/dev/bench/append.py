"""Benchmark of appends to the log, compared with the limits of the machine.

Each round appends frame commits in batches of 100 by a few callers, then copies the same
rows raw (one binary COPY into a table with the same columns and only its primary key), then
lets 64 callers append one event at a time, and counts how often per second this disk can
make 8 kB durable. It runs in its own database, which no mirror reads.

Single appends are compared with three baselines, because "an fsync" can mean each of them:

- `fsync_per_s`: 8 kB overwritten in a small file that has its size, and fdatasync. Postgres
  syncs a recycled WAL segment like this; `ratio_single_to_fsync` is against it.
- `append_fsync_per_s`: 8 kB written at the end of a file, and fsync, which makes the file's
  new size durable too; `ratio_single_to_append_fsync` is against it.
- `commits_per_fsync`: single events stored for each sync of its WAL that the server really
  did meanwhile (pg_stat_io). Syncs of other clients count as well, so it is a lower bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import asyncpg

from streams.app import Log, open_log
from streams.dev.bench.disk import append_fsync_rate, fsync_rate
from streams.dev.bench.report import BenchReport, middle, per_second
from streams.dev.bench.wal_syncs import wal_syncs
from streams.dev.bench.workload import frame_commits
from streams.dev.scratch_database import scratch_database
from streams.events.model import NewEvent
from streams.settings import Settings

BATCH, BATCH_CALLERS, SINGLE_CALLERS = 100, 4, 64
WARM_UP = 2 * SINGLE_CALLERS
ROOTS = 64
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'noetl' "
    "AND table_name = 'event' AND column_name <> 'execution_id' ORDER BY ordinal_position"
)
GAPS = """
SELECT count(*) FROM (
  SELECT seq <> row_number() OVER (PARTITION BY root_id ORDER BY seq) AS gap FROM noetl.event
) places WHERE gap"""

Say = Callable[[str], None]


async def bench_append(
    settings: Settings, folder: Path, *, events: int, rounds: int, say: Say
) -> BenchReport:
    """Run the bench; `folder` is on the disk to compare with."""
    async with scratch_database(settings) as own:
        dsn = own.event_store.canonical_connection.dsn("owner")
        found = []
        for number in range(1, rounds + 1):
            found.append(await _round(own, folder, events))
            say(f"round {number} of {rounds}: {_line(found[-1])}")
        stored, gaps = await _count(dsn)
        async with open_log(own, role="bench") as log:
            sealer = log.sealer
    figures = middle(found)
    single = figures["single_events_per_s"]
    figures["ratio_to_copy"] = figures["batch_events_per_s"] / figures["copy_rows_per_s"]
    figures["ratio_single_to_fsync"] = single / figures["fsync_per_s"]
    figures["ratio_single_to_append_fsync"] = single / figures["append_fsync_per_s"]
    expected = rounds * (events + events // 4 + WARM_UP)
    faults = [f"{expected} events appended, {stored} stored"] if stored != expected else []
    faults += [f"{gaps} gaps in seq"] if gaps else []
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return BenchReport({**rounded, "sealer": sealer}, tuple(faults))


async def _round(own: Settings, folder: Path, events: int) -> dict[str, float]:
    return {
        **await _in_batches(own, events),
        **await _singly(own, events // 4),
        "fsync_per_s": await asyncio.to_thread(fsync_rate, folder),
        "append_fsync_per_s": await asyncio.to_thread(append_fsync_rate, folder),
    }


async def _in_batches(own: Settings, events: int) -> dict[str, float]:
    async with open_log(own, role="bench") as log:
        batched = frame_commits(log.ids.next, events=events, roots=ROOTS)
        batches = [batched[start : start + BATCH] for start in range(0, events, BATCH)]
        batch_s = await _append_all(log, batches, BATCH_CALLERS)
    dsn = own.event_store.canonical_connection.dsn("owner")
    copy_s = await _copy(dsn, {event.root.id for event in batched}, events)
    return {
        "batch_events_per_s": per_second(events, batch_s),
        "copy_rows_per_s": per_second(events, copy_s),
    }


async def _singly(own: Settings, events: int) -> dict[str, float]:
    """Append one event at a time, through connections whose syncs can be distinguished."""
    database = own.event_store.canonical_connection
    dsn, user = database.dsn("owner"), database.login("append").user
    before = await wal_syncs(dsn, after_all_of=user)
    async with open_log(own, role="bench") as log:
        singles = [[e] for e in frame_commits(log.ids.next, events=WARM_UP + events, roots=ROOTS)]
        await _append_all(log, singles[:WARM_UP], SINGLE_CALLERS)
        single_s = await _append_all(log, singles[WARM_UP:], SINGLE_CALLERS)
    syncs = await wal_syncs(dsn, after_all_of=user) - before
    return {
        "single_events_per_s": per_second(events, single_s),
        "commits_per_fsync": len(singles) / syncs,
    }


async def _append_all(log: Log, batches: Iterable[Sequence[NewEvent]], callers: int) -> float:
    waiting = iter(batches)

    async def caller() -> None:
        for batch in waiting:
            await log.store.append(batch)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    return time.perf_counter() - started


async def _copy(dsn: str, roots: set[int], events: int) -> float:
    """Return how long a raw COPY of the round's rows takes."""
    connection = await asyncpg.connect(dsn)
    try:
        names = [row[0] for row in await connection.fetch(COLUMNS)]
        selected = ", ".join("xid::text" if name == "xid" else name for name in names)
        rows = await connection.fetch(
            f"SELECT {selected} FROM noetl.event WHERE root_id BETWEEN $1 AND $2",  # noqa: S608
            min(roots),
            max(roots),
        )
        assert len(rows) == events
        plain = f"plain_{uuid4().hex}"
        await connection.execute(f"CREATE TABLE {plain} (LIKE noetl.event)")
        await connection.execute(
            f"ALTER TABLE {plain} ALTER xid TYPE text USING xid::text, ALTER xid DROP DEFAULT, "
            "ADD PRIMARY KEY (root_id, seq)"
        )
        records = [tuple(row) for row in rows]
        started = time.perf_counter()
        await connection.copy_records_to_table(plain, records=records, columns=names)
        return time.perf_counter() - started
    finally:
        await connection.close()


async def _count(dsn: str) -> tuple[int, int]:
    connection = await asyncpg.connect(dsn)
    try:
        stored = await connection.fetchval("SELECT count(*) FROM noetl.event")
        return int(stored), int(await connection.fetchval(GAPS))
    finally:
        await connection.close()


def _line(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in figures.items())
