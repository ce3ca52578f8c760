"""Leases of worker ids over a real Postgres: one holder at a time, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from streams.clock import SettableClock, SystemClock
from streams.ids import ClockSkew, Snowflakes, WorkerIdLost, worker_of
from streams.log.errors import LogUnavailable
from streams.log.worker_ids import LeasedWorkerId, NoWorkerIdFree, check_skew, hold_worker_id
from streams.settings import Settings
from tests.support.log.databases import dsn
from tests.support.waiting import until

CLOCK = SystemClock()


@pytest.fixture
async def pool(database: Settings) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(dsn(database), min_size=0, max_size=8) as pool:
        free = "UPDATE noetl.worker_id SET holder = NULL, leased_until = '-infinity'"
        await pool.execute(free)
        yield pool
        await pool.execute(free)


def lease_of(pool: asyncpg.Pool, holder: str) -> LeasedWorkerId:
    return LeasedWorkerId(pool, CLOCK, holder)


async def end_lease(pool: asyncpg.Pool, worker_id: int, *, seconds_ago: float) -> None:
    await pool.execute(
        "UPDATE noetl.worker_id SET leased_until = clock_timestamp() - $2::interval"
        " WHERE worker_id = $1",
        worker_id,
        timedelta(seconds=seconds_ago),
    )


async def leave_free(pool: asyncpg.Pool, worker_id: int) -> None:
    await pool.execute(
        "UPDATE noetl.worker_id SET holder = 'other', leased_until = 'infinity'"
        " WHERE worker_id <> $1",
        worker_id,
    )


async def test_claims_at_the_same_time_get_different_worker_ids(pool: asyncpg.Pool) -> None:
    leases = [lease_of(pool, f"holder-{n}") for n in range(40)]
    await asyncio.gather(*(lease.claim() for lease in leases))

    assert len({lease.worker_id for lease in leases}) == 40
    assert all(lease.valid() for lease in leases)


async def test_the_appending_role_may_claim_but_not_touch_the_table(
    pool: asyncpg.Pool, database: Settings
) -> None:
    del pool  # it has migrated the database and emptied the table
    connection = await asyncpg.connect(database.event_store.canonical_connection.dsn("append"))
    try:
        row = await connection.fetchrow("SELECT * FROM noetl.claim_worker_id('me', 60)")
        assert row["worker_id"] == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("UPDATE noetl.worker_id SET holder = 'me'")
    finally:
        await connection.close()


async def test_when_all_are_taken_the_error_says_so(pool: asyncpg.Pool) -> None:
    await pool.execute("UPDATE noetl.worker_id SET leased_until = now() + interval '1 min'")
    with pytest.raises(NoWorkerIdFree, match=r"all 1024 worker ids are taken.*UTC; stop"):
        await lease_of(pool, "late").claim()


@pytest.mark.parametrize(("seconds_ago", "claimable"), [(8.0, False), (11.0, True)])
async def test_an_expired_worker_id_rests_before_it_is_lent_again(
    pool: asyncpg.Pool, seconds_ago: float, claimable: bool
) -> None:
    await leave_free(pool, 5)
    await end_lease(pool, 5, seconds_ago=seconds_ago)
    lease = lease_of(pool, "next")
    if claimable:
        await lease.claim()
        assert lease.worker_id == 5
    else:
        with pytest.raises(NoWorkerIdFree):
            await lease.claim()


async def test_a_released_worker_id_rests_too(pool: asyncpg.Pool) -> None:
    await leave_free(pool, 6)
    lease = lease_of(pool, "first")
    await lease.claim()
    await lease.release()

    assert not lease.valid()
    with pytest.raises(NoWorkerIdFree):
        await lease_of(pool, "second").claim()


async def test_a_late_renewal_is_good_while_nobody_else_had_the_id(pool: asyncpg.Pool) -> None:
    lease = lease_of(pool, "slow")
    await lease.claim()
    await end_lease(pool, lease.worker_id, seconds_ago=60)
    await lease.renew()

    assert lease.valid()
    until = await pool.fetchval(
        "SELECT leased_until - now() FROM noetl.worker_id WHERE worker_id = $1", lease.worker_id
    )
    assert timedelta(seconds=50) < until <= timedelta(seconds=60)


async def test_a_holder_that_lost_its_id_can_neither_renew_nor_release_it(
    pool: asyncpg.Pool,
) -> None:
    await leave_free(pool, 9)
    loser, winner = lease_of(pool, "loser"), lease_of(pool, "winner")
    await loser.claim()
    await end_lease(pool, 9, seconds_ago=11)
    await winner.claim()

    with pytest.raises(WorkerIdLost, match="worker id 9"):
        await loser.renew()
    assert not loser.valid()
    await loser.release()
    await winner.renew()
    assert winner.valid()


async def test_a_clock_that_is_off_gets_no_worker_id_and_keeps_none(pool: asyncpg.Pool) -> None:
    wrong = SettableClock(datetime.now(UTC) + timedelta(seconds=60))
    lease = LeasedWorkerId(pool, wrong, "wrong")
    with pytest.raises(ClockSkew, match=r"(59|60)\.\d s ahead of that of Postgres"):
        await lease.claim()

    assert not lease.valid()
    assert await pool.fetchval("SELECT count(holder) FROM noetl.worker_id") == 0


async def test_a_clock_that_goes_wrong_is_found_at_the_next_renewal(pool: asyncpg.Pool) -> None:
    clock = SettableClock(datetime.now(UTC))
    lease = LeasedWorkerId(pool, clock, "drifting")
    await lease.claim()
    clock.set(datetime.now(UTC) - timedelta(seconds=30))

    with pytest.raises(ClockSkew, match="behind that of Postgres"):
        await lease.renew()
    assert not lease.valid()


async def test_the_lease_counts_from_before_it_was_asked_for(pool: asyncpg.Pool) -> None:
    clock = SettableClock(datetime.now(UTC))
    lease = LeasedWorkerId(pool, clock, "counting", lease_seconds=60)
    await lease.claim()
    clock.advance(59.9)
    assert lease.valid()
    clock.advance(0.1)
    assert not lease.valid()


async def test_ids_go_on_under_another_worker_id_after_one_was_lost(pool: asyncpg.Pool) -> None:
    async with hold_worker_id(pool, CLOCK, "keeper", lease_seconds=1) as lease:
        ids = Snowflakes(CLOCK, lease)
        first = lease.worker_id
        assert worker_of(ids.next()) == first
        await pool.execute(
            "UPDATE noetl.worker_id SET holder = 'thief', leased_until = 'infinity'"
            " WHERE worker_id = $1",
            first,
        )
        await until(lambda: lease.worker_id != first and lease.valid(), within_s=10)
        assert worker_of(ids.next()) == lease.worker_id != first

    assert not lease.valid()
    assert await pool.fetchval("SELECT count(*) FROM noetl.worker_id WHERE holder = 'keeper'") == 0


async def test_without_postgres_the_error_says_so(pool: asyncpg.Pool, database: Settings) -> None:
    closed = await asyncpg.create_pool(dsn(database), min_size=0)
    await closed.close()
    with pytest.raises(LogUnavailable, match="Postgres does not answer"):
        await lease_of(closed, "alone").claim()


@pytest.mark.parametrize(
    ("db_offset", "travel", "off_by"),
    [(5, 0, None), (-5, 0, None), (6, 0, -6), (-6, 0, 6), (20, 15, None), (20.5, 15, -5.5)],
)
def test_skew_allows_for_the_time_the_answer_travelled(
    db_offset: float, travel: float, off_by: float | None
) -> None:
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    moments = asked, asked + timedelta(seconds=db_offset), asked + timedelta(seconds=travel)
    if off_by is None:
        check_skew(*moments)
    else:
        with pytest.raises(ClockSkew) as caught:
            check_skew(*moments)
        assert caught.value.seconds == off_by
