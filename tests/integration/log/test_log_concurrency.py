"""Many processes, shared roots: no deadlock, no stranger refused, no gap, no changed past."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from streams.app import Log, open_log
from streams.events.model import Event
from streams.log.port import Frontier
from streams.settings import Settings
from tests.support.events.random_appends import Task, report_of, start
from tests.support.log.databases import dsn, root_events

pytestmark = pytest.mark.stack

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
async def log(database: Settings) -> AsyncIterator[Log]:
    async with open_log(database, role="test") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes find the package `tests` from here."""
    monkeypatch.chdir(REPOSITORY)


async def test_ten_thousand_random_appends_over_shared_roots(log: Log, database: Settings) -> None:
    roots = log.ids.take(25)
    tasks = [Task(dsn(database, "append"), roots, 2_500, worker) for worker in range(900, 904)]
    processes = await asyncio.gather(*map(start, tasks))
    reports = await asyncio.gather(*map(report_of, processes))

    ended = sum((report.ended for report in reports), Counter[str]())
    assert set(ended) <= {"appended", "lost", "claimed by another"}, ended
    assert ended.total() == 10_000
    assert min(ended["lost"], ended["claimed by another"]) > 0, "the luck must be mixed"

    acknowledged = {(r, s): e for report in reports for r, s, e in report.events}
    assert len(acknowledged) == sum(len(report.events) for report in reports)
    for root in roots:
        found = await root_events(log.store, root)
        assert [one.seq for one in found] == list(range(1, len(found) + 1))
        for one in found:
            assert acknowledged.pop((root, one.seq)) == one.event_id
        _versions_have_no_gap(found)
    assert not acknowledged, "an acknowledged event is not in the log"
    connection = await asyncpg.connect(dsn(database))
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await connection.fetchval(deadlocks) == 0
    await connection.close()
    whole = await _whole_log(log)
    assert sorted(one.event_id for one in whole) == sorted(
        event_id for report in reports for _, _, event_id in report.events
    )
    for root in roots:
        seqs = [one.seq for one in whole if one.root.id == root]
        assert seqs == sorted(seqs), "the whole log must tell a root in its own order"


async def test_what_was_read_up_to_a_place_never_changes(log: Log, database: Settings) -> None:
    """Two processes append to one execution, this one reads it all the while."""
    root = log.ids.next()
    tasks = [Task(dsn(database, "append"), [root], 1_000, worker) for worker in (910, 911)]
    processes = [await start(task) for task in tasks]
    reports = asyncio.gather(*map(report_of, processes))
    rng = random.Random(3)
    known: list[tuple[int, str]] = []
    looks = 0
    while not reports.done():
        known += _as_read(await root_events(log.store, root, after_seq=len(known)))
        place = rng.randint(0, len(known))
        again = await root_events(log.store, root, through_seq=place)
        assert _as_read(again) == known[:place]
        looks += place > 0
    await reports
    whole = _as_read(await root_events(log.store, root))
    assert whole[: len(known)] == known
    assert looks >= 3, "the reader must have seen the execution grow"
    assert len(whole) >= 2_000


def _as_read(events: list[Event]) -> list[tuple[int, str]]:
    """The chain covers every event before, so it is all that must be remembered."""
    return [(one.seq, one.chain) for one in events]


def _versions_have_no_gap(events: list[Event]) -> None:
    versions: Counter[str] = Counter()
    for one in events:
        versions[one.stream_id] += 1
        assert one.stream_version == versions[one.stream_id]


async def _whole_log(log: Log) -> list[Event]:
    """Return all events, as a reader of the whole log gets them."""
    found: list[Event] = []
    frontier = Frontier()
    while True:
        page, frontier = await log.store.read_log(frontier, limit=5_000)
        if not page:
            return found
        found += page
