"""Whole-log readers: nothing is skipped, whatever transactions are open when they look."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from streams.app import Log, open_log, open_pool
from streams.events.catalogue import catalogue
from streams.events.model import Event, NewEvent
from streams.events.seal import seal
from streams.log.append_connection import APPEND
from streams.log.errors import LogUnavailable
from streams.log.port import Frontier
from streams.log.postgres import PostgresEventStore
from streams.log.rows import new_event_row
from streams.settings import Settings
from tests.support.events.examples import PRODUCER
from tests.support.log.databases import dsn, end_of, event, root_events

pytestmark = pytest.mark.stack


@pytest.fixture
async def log(database: Settings) -> AsyncIterator[Log]:
    async with open_log(database, role="test") as opened:
        yield opened


class Slow:
    """An appender whose transaction stays open until it is released."""

    def __init__(self, log: Log, connection: asyncpg.Connection) -> None:
        self._log, self._connection = log, connection
        self._open = connection.transaction()

    async def append(self, one: NewEvent) -> None:
        await self._open.start()
        sealed = seal(
            one,
            event_id=self._log.ids.next(),
            producer=PRODUCER,
            codec=self._log.codec,
            catalogue=catalogue(),
        )
        (answer,) = await self._connection.fetch(APPEND, [new_event_row(sealed, 0)])
        assert answer["outcome"] == "appended"

    async def end(self, *, commit: bool = True) -> None:
        await (self._open.commit() if commit else self._open.rollback())
        self._open = self._connection.transaction()


@pytest.fixture
async def slow(log: Log, database: Settings) -> AsyncIterator[list[Slow]]:
    opened = [await asyncpg.connect(dsn(database, "append")) for _ in range(4)]
    yield [Slow(log, connection) for connection in opened]
    for connection in opened:
        await connection.close()


async def test_an_open_transaction_hides_what_was_committed_after_it_began(
    log: Log, slow: list[Slow]
) -> None:
    start = await end_of(log.store)
    early, late = log.ids.next(), log.ids.next()
    await slow[0].append(event(early))
    await log.store.append([event(late)])

    assert len(await root_events(log.store, late)) == 1, "its own root shows it at once"
    assert await log.store.read_log(start) == ((), start)

    await slow[0].end()
    found, _ = await _read_until(log, start, 2)
    assert [one.root.id for one in found] == [early, late]


async def test_a_transaction_that_is_rolled_back_hides_nothing_and_leaves_no_gap(
    log: Log, slow: list[Slow]
) -> None:
    start = await end_of(log.store)
    root, late = log.ids.next(), log.ids.next()
    await log.store.append([event(root)])
    await slow[0].append(event(root))
    await log.store.append([event(late)])
    before, cut = await _read_until(log, start, 1)
    assert [one.root.id for one in before] == [root]

    await slow[0].end(commit=False)
    await log.store.append([event(root)])
    found, _ = await _read_until(log, cut, 2)
    assert [(one.root.id, one.seq) for one in found] == [(late, 1), (root, 2)]


async def test_a_reader_that_reads_all_the_time_misses_nothing(log: Log, slow: list[Slow]) -> None:
    """Transactions overlap at random; what the reader got piece by piece is the whole log."""
    rng = random.Random(7)
    start = cut = await end_of(log.store)
    seen: list[Event] = []
    roots = [log.ids.next() for _ in slow]
    busy: set[int] = set()
    committed = 0
    for _ in range(200):
        at = rng.randrange(len(slow))
        if at in busy:
            keep = rng.random() < 0.8
            await slow[at].end(commit=keep)
            committed += keep
            busy.discard(at)
        else:
            await slow[at].append(event(roots[at]))
            busy.add(at)
        page, cut = await log.store.read_log(cut, limit=rng.randint(1, 5))
        seen.extend(page)
    for at in busy:
        await slow[at].end()
        committed += 1
    rest, cut = await _read_until(log, cut, committed - len(seen))
    seen.extend(rest)

    whole, _ = await log.store.read_log(start)
    assert [one.event_id for one in seen] == [one.event_id for one in whole]
    assert len(seen) == committed
    for root in roots:
        seqs = [one.seq for one in seen if one.root.id == root]
        assert seqs == list(range(1, len(seqs) + 1))


async def _read_until(log: Log, after: Frontier, count: int) -> tuple[list[Event], Frontier]:
    """Follow the log for `count` events: transactions of other databases may delay it."""
    found: list[Event] = []
    if count:
        follower = log.store.follow(after)
        async for one, reached in follower:
            found.append(one)
            after = reached
            if len(found) == count:
                break
        await follower.aclose()  # type: ignore[attr-defined]
    return found, after


async def test_a_row_that_security_hides_is_an_error_and_not_missing(
    fresh_database: Settings,
) -> None:
    async with open_log(fresh_database, role="test") as log:
        await log.store.append([event(log.ids.next(), "playbook.initialized")])
        codec = log.codec
    owner = await asyncpg.connect(dsn(fresh_database))
    await owner.execute("ALTER TABLE noetl.event ENABLE ROW LEVEL SECURITY")
    await owner.close()
    reader = await asyncpg.connect(dsn(fresh_database, "read"))
    assert await reader.fetchval("SELECT count(*) FROM noetl.event") == 0, "hidden, in silence"
    await reader.close()

    # As if somebody had made the role that appends without its right to see everything.
    place = fresh_database.event_store.canonical_connection
    roles = place.roles.model_copy(update={"append": place.roles.read})
    async with open_pool(place.model_copy(update={"roles": roles}).dsn("append")) as pool:
        with pytest.raises(LogUnavailable, match="row-level security"):
            await PostgresEventStore(None, pool, codec).read_log(Frontier(0, 0))
