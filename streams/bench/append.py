"""How fast the log takes events, beside what the machine could do at most.

Each round appends frame commits in batches of 100 by a few callers, then copies the same
rows raw (one binary COPY into a table with the same columns and only its primary key), then
lets 64 callers append one event at a time, and counts how often per second this disk can
make 8 kB durable. It runs in a database of its own, which no mirror reads.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import asyncpg

from streams.app import Log, open_log
from streams.bench.report import Report, middle, per_second
from streams.bench.workload import frame_commits
from streams.envelope.model import NewEvent
from streams.log.scratch import scratch_database
from streams.settings import Settings

BATCH, BATCH_CALLERS, SINGLE_CALLERS = 100, 4, 64
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
) -> Report:
    """Run the bench; `folder` lies on the disk whose speed is compared."""
    async with scratch_database(settings) as own, open_log(own, role="bench") as log:
        dsn = own.event_store.canonical_connection.dsn("owner")
        found = []
        for number in range(1, rounds + 1):
            found.append(await _round(log, dsn, folder, events))
            say(f"round {number} of {rounds}: {_line(found[-1])}")
        stored, gaps = await _count(dsn)
        sealer = log.sealer
    figures = middle(found)
    figures["ratio_to_copy"] = figures["batch_events_per_s"] / figures["copy_rows_per_s"]
    figures["ratio_single_to_fsync"] = figures["single_events_per_s"] / figures["fsync_per_s"]
    expected = rounds * (events + events // 4)
    faults = [f"{expected} events appended, {stored} stored"] if stored != expected else []
    faults += [f"{gaps} gaps in seq"] if gaps else []
    rounded = {name: round(value, 3) for name, value in figures.items()}
    return Report({**rounded, "sealer": sealer}, tuple(faults))


async def _round(log: Log, dsn: str, folder: Path, events: int) -> dict[str, float]:
    batched = frame_commits(log.ids.next, events=events, roots=ROOTS)
    batches = [batched[start : start + BATCH] for start in range(0, events, BATCH)]
    batch_s = await _append_all(log, batches, BATCH_CALLERS)
    copy_s = await _copy(dsn, {event.root.id for event in batched}, events)
    singles = frame_commits(log.ids.next, events=events // 4, roots=ROOTS)
    single_s = await _append_all(log, [[event] for event in singles], SINGLE_CALLERS)
    return {
        "batch_events_per_s": per_second(events, batch_s),
        "copy_rows_per_s": per_second(events, copy_s),
        "single_events_per_s": per_second(len(singles), single_s),
        "fsync_per_s": await asyncio.to_thread(fsync_rate, folder),
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


def fsync_rate(folder: Path, seconds: float = 1.0) -> float:
    """Return how often per second 8 kB can be made durable in `folder`."""
    block, done = b"\0" * 8192, 0
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        os.pwrite(file.fileno(), block * 64, 0)
        os.fsync(file.fileno())
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            os.pwrite(file.fileno(), block, (done % 64) * 8192)
            os.fdatasync(file.fileno())
            done += 1
        return per_second(done, time.perf_counter() - started)


async def _count(dsn: str) -> tuple[int, int]:
    connection = await asyncpg.connect(dsn)
    try:
        stored = await connection.fetchval("SELECT count(*) FROM noetl.event")
        return int(stored), int(await connection.fetchval(GAPS))
    finally:
        await connection.close()


def _line(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in figures.items())
