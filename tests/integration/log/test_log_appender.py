"""The appender on a real Postgres: strangers share a call, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from streams.app import Log, open_log
from streams.errors import Unavailable
from streams.events.model import NewEvent
from streams.ids import lowest_id_at
from streams.log.appender import Appender
from streams.log.errors import BadBatch, ForeignRoot, LogUnavailable, RootEnded, VersionConflict
from streams.log.port import AppendOutcome, Frontier, Receipt
from streams.log.postgres import PostgresEventStore
from streams.settings import Settings
from tests.support.events.examples import PRODUCER
from tests.support.log.databases import dsn, event, root_events

pytestmark = pytest.mark.stack

Answer = Receipt | BaseException


@pytest.fixture
async def log(database: Settings) -> AsyncIterator[Log]:
    """A log whose appender has one lane, so that what is said at once shares a call."""
    async with open_log(database, role="test", lanes=1) as opened:
        yield opened


async def together(log: Log, *batches: list[NewEvent]) -> list[Answer]:
    """Append several callers' batches at once: they share one call of the database."""
    answers = await asyncio.gather(
        *[log.store.append(batch) for batch in batches], return_exceptions=True
    )
    return list(answers)


async def test_callers_that_append_at_once_share_a_transaction(
    log: Log, database: Settings
) -> None:
    root = log.ids.next()
    await together(log, *[[event(root)] for _ in range(50)])
    connection = await asyncpg.connect(dsn(database, "read"))
    count = "SELECT count(DISTINCT xid) FROM noetl.event WHERE root_id = $1"
    assert await connection.fetchval(count, root) == 1
    await connection.close()


async def test_two_lanes_share_what_is_waiting_and_keep_each_root_whole(database: Settings) -> None:
    async with open_log(database, role="test", lanes=2) as log:
        root = log.ids.next()
        answers = await together(log, *[[event(root)] for _ in range(50)])
        seqs = [one.events[0].seq for one in answers if isinstance(one, Receipt)]
    connection = await asyncpg.connect(dsn(database, "read"))
    count = "SELECT count(DISTINCT xid) FROM noetl.event WHERE root_id = $1"
    assert await connection.fetchval(count, root) == 2
    assert sorted(seqs) == list(range(1, 51))
    await connection.close()


async def test_a_refusal_does_not_hurt_the_strangers_in_its_call(log: Log) -> None:
    root, ended = log.ids.next(), log.ids.next()
    await log.store.append([event(root), event(ended, "playbook.completed")])
    known = event(root)
    await log.store.append([known])
    answers = await together(
        log,
        [event(root)],
        [event(root), event(root, expected_version=99)],
        [event(ended)],
        [event(root, tenant_id="globex", payload_ref=None)],
        [known],
        [event(root), event(root)],
    )
    assert [type(answer) for answer in answers] == [
        Receipt, VersionConflict, RootEnded, ForeignRoot, Receipt, Receipt,
    ]  # fmt: skip
    assert isinstance(answers[4], Receipt)
    assert answers[4].events[0].outcome is AppendOutcome.DUPLICATE
    assert [one.seq for one in await root_events(log.store, root)] == [1, 2, 3, 4, 5]


async def test_what_one_caller_ends_is_ended_for_the_next_in_the_same_call(log: Log) -> None:
    root = log.ids.next()
    answers = await together(log, [event(root)], [event(root, "playbook.completed")], [event(root)])
    assert [type(answer) for answer in answers] == [Receipt, Receipt, RootEnded]


async def test_a_claim_two_callers_want_in_one_call_goes_to_the_first(log: Log) -> None:
    root = log.ids.next()
    won, lost = await together(log, [event(root, "loop.done")], [event(root, "loop.done")])
    assert isinstance(won, Receipt)
    assert isinstance(lost, Receipt)
    assert lost.claimed_by == won.events[0].event_id


async def test_a_key_two_callers_send_in_one_call_is_appended_once(log: Log) -> None:
    root = log.ids.next()
    same = event(root)
    one, two = await together(log, [same], [same])
    assert isinstance(one, Receipt)
    assert isinstance(two, Receipt)
    assert one.events[0].event_id == two.events[0].event_id
    assert two.events[0].outcome is AppendOutcome.DUPLICATE


async def test_a_new_root_is_not_kept_by_a_caller_that_was_refused(log: Log) -> None:
    root = log.ids.next()
    refused, stranger = await together(
        log,
        [event(root, expected_version=3)],
        [event(root, tenant_id="globex", payload_ref=None)],
    )
    assert isinstance(refused, VersionConflict)
    assert isinstance(stranger, Receipt)


async def test_a_refused_append_leaves_no_trace_of_its_root(log: Log, database: Settings) -> None:
    root = log.ids.next()
    with pytest.raises(VersionConflict):
        await log.store.append([event(root, expected_version=3)])
    connection = await asyncpg.connect(dsn(database, "read"))
    heads = "SELECT count(*) FROM noetl.root_head WHERE root_id = $1"
    assert await connection.fetchval(heads, root) == 0
    await connection.close()


async def test_a_batch_may_touch_very_many_roots(log: Log) -> None:
    roots = log.ids.take(3_000)
    receipt = await log.store.append([event(root) for root in roots])
    assert [one.seq for one in receipt.events] == [1] * len(roots)


async def test_what_only_the_database_can_refuse_does_not_hurt_strangers_either(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size check is the last line; reached here by switching off the one before it."""
    monkeypatch.setattr("streams.events.seal.INLINE_MAX_BYTES", 2**20)
    root = log.ids.next()
    answers = await together(
        log,
        [event(root)],
        [event(root), event(root, context="x" * 200_000)],
        [event(root)],
    )
    assert [type(answer) for answer in answers] == [Receipt, BadBatch, Receipt]
    assert "event_size" in str(answers[1])
    assert len(await root_events(log.store, root)) == 2


async def test_a_root_beyond_the_last_partition_says_what_to_do(
    log: Log, database: Settings
) -> None:
    root = log.ids.next()
    later = lowest_id_at(datetime.now(UTC) + timedelta(days=400))
    batch = [event(root), event(later)]
    beyond, stranger = await together(log, batch, [event(root)])
    assert isinstance(beyond, LogUnavailable)
    assert "streams migrate" in str(beyond)
    assert isinstance(stranger, Receipt)

    connection = await asyncpg.connect(dsn(database))
    await connection.execute("SELECT noetl.ensure_partitions(16)")
    await connection.close()
    receipt = await log.store.append(batch)
    assert [one.seq for one in receipt.events] == [2, 1]


async def test_a_caller_that_gives_up_leaves_the_others_alone(log: Log) -> None:
    root = log.ids.next()
    impatient = asyncio.ensure_future(log.store.append([event(root)]))
    patient = [asyncio.ensure_future(log.store.append([event(root)])) for _ in range(5)]
    await asyncio.sleep(0)
    impatient.cancel()
    receipts = await asyncio.gather(*patient)
    assert all(receipt.won for receipt in receipts)
    seqs = [one.seq for one in await root_events(log.store, root)]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_the_connection_may_be_cut_at_any_time(log: Log, database: Settings) -> None:
    """Each append is acknowledged once, although its connection is cut again and again."""
    root = log.ids.next()
    hand = await asyncpg.connect(dsn(database, "append"))
    mine = """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'streams-appender' AND datname = current_database()
    """
    cuts = 0
    for _ in range(10):
        appends = [asyncio.ensure_future(log.store.append([event(root)])) for _ in range(20)]
        cuts += await hand.fetchval(mine)
        receipts = await asyncio.gather(*appends)
        assert all(receipt.won for receipt in receipts)
    await hand.close()
    assert cuts > 0
    seqs = [one.seq for one in await root_events(log.store, root)]
    assert seqs == list(range(1, 201))


async def test_a_database_that_stays_away_is_said_so_and_the_next_append_tries_again(
    log: Log,
) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    appender = Appender(
        nowhere, codec=log.codec, take_ids=log.ids.take, producer=PRODUCER, give_up_after_s=0.2
    )
    async with appender:
        for _ in range(2):
            with pytest.raises(LogUnavailable, match="may be retried") as refused:
                await appender.append([event(1)])
            assert isinstance(refused.value, Unavailable)


async def test_closing_sends_what_is_waiting_and_then_takes_no_more(
    log: Log, database: Settings
) -> None:
    root = log.ids.next()
    appender = Appender(
        dsn(database, "append"), codec=log.codec, take_ids=log.ids.take, producer=PRODUCER
    )
    async with appender:
        waiting = [asyncio.ensure_future(appender.append([event(root)])) for _ in range(3)]
        await asyncio.sleep(0)
    receipts = await asyncio.gather(*waiting)
    assert sorted(receipt.events[0].seq for receipt in receipts) == [1, 2, 3]
    with pytest.raises(LogUnavailable, match="not running"):
        await appender.append([event(root)])


async def test_a_log_that_was_never_migrated_says_what_to_do(
    log: Log, empty_database: Settings
) -> None:
    where = dsn(empty_database)
    appender = Appender(where, codec=log.codec, take_ids=log.ids.take, producer=PRODUCER)
    async with asyncpg.create_pool(where, min_size=1, max_size=1) as pool, appender:
        store = PostgresEventStore(appender, pool, log.codec)
        with pytest.raises(LogUnavailable, match="streams migrate"):
            await store.append([event(1)])
        with pytest.raises(LogUnavailable, match="streams migrate"):
            await root_events(store, 1)
        with pytest.raises(LogUnavailable, match="streams migrate"):
            await store.read_log(Frontier())
