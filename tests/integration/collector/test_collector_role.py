"""The collector by itself on a real log: its lock, its memory of sweeps, and the role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from streams.collector.collect import end_results
from streams.collector.errors import LockLost
from streams.collector.postgres import open_ledger
from streams.roles.collector import run
from streams.settings import Settings
from tests.conftest import make_event
from tests.integration.collector.test_collector import HOUR, House, open_house
from tests.support.log.databases import settled

pytestmark = pytest.mark.stack

PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture
async def house(fresh_database: Settings, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(fresh_database, tmp_path) as house:
        yield house


async def ends(house: House, root: int) -> list[str]:
    events = house.log.store.read_root(make_event(root).root)
    return [str(e.meta["reason"]) async for e in events if e.type == "result.expired"]


async def test_an_execution_ended_when_it_ended_whatever_came_after(house: House) -> None:
    root = await house.execution(house.stored(await house.put(b"x")))
    await asyncio.sleep(0.05)
    late = make_event(root, "reply.sent", meta={"reply_to": "a"})
    await house.log.store.append([late])
    await settled(house.log.pool)
    found = [event async for event in house.log.store.read_root(make_event(root).root)]
    (ended,) = [event for event in found if event.type == "playbook.completed"]
    assert found[-1].ingest_time > ended.ingest_time
    async with house.ports.ledger.snapshot() as snapshot:
        holding = await snapshot.holding(root)
        assert await snapshot.workflows_ended([root]) == {root: ended.ingest_time}
    assert holding is not None
    assert holding.root.ended_at == ended.ingest_time


async def test_the_lock_is_gone_with_its_connection(fresh_database: Settings) -> None:
    canonical = fresh_database.event_store.canonical_connection
    async with open_ledger(canonical.dsn("collect")) as ledger:
        with pytest.raises(LockLost):
            await ledger.check_lock()
        async with ledger.lock():
            await ledger.check_lock()
            other = await asyncpg.connect(canonical.dsn("collect"))
            await other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND usename = current_user "
                "AND pid <> pg_backend_pid()"
            )
            await other.close()
            with pytest.raises(LockLost):
                await ledger.check_lock()


async def project(
    settings: Settings, root: int, stored: dict[str, Any], scope: str, *, ended: bool = True
) -> None:
    """Write the rows that the projector makes of an execution and its result."""
    dsn = settings.event_store.canonical_connection.dsn("project")
    connection = await asyncpg.connect(dsn)
    await connection.execute(
        "INSERT INTO noetl.execution (execution_id, tenant_id, organization_id, end_time) "
        "VALUES ($1, 'acme', 'care', CASE WHEN $2 THEN now() END)",
        root,
        ended,
    )
    await connection.execute(
        "INSERT INTO noetl.result_ref (ref_id, ref, execution_id, tenant_id, organization_id, "
        "store_tier, scope, expires_at) "
        "VALUES ($1, 'a', $2, 'acme', 'care', 'object', $3, $4::text::timestamptz)",
        int(stored["meta"]["result_id"]),
        root,
        scope,
        stored["meta"].get("expires_at"),
    )
    await connection.close()


@pytest.mark.parametrize("ended", [False, True])
async def test_a_step_s_results_end_soon_though_its_execution_has_ended_meanwhile(
    house: House, fresh_database: Settings, ended: bool
) -> None:
    stored = house.stored(await house.put(b"of a step"), scope="step")
    left = {"type": "step.exit", "node_name": "fetch", "meta": {"activation": 1}, "status": "OK"}
    root = await house.execution(stored, left, end=ended)
    await settled(house.log.pool)
    await project(fresh_database, root, stored, "step", ended=ended)
    assert await end_results(house.ports, grace=HOUR) == {"scope": 1}
    assert await ends(house, root) == ["scope"]


async def test_results_of_a_step_that_nobody_left_wait_for_the_grace(
    house: House, fresh_database: Settings
) -> None:
    stored = house.stored(await house.put(b"of a step"), scope="step")
    root = await house.execution(stored)
    await settled(house.log.pool)
    await project(fresh_database, root, stored, "step")
    assert await end_results(house.ports, grace=HOUR) == {}


async def test_results_are_ended_without_reading_the_whole_log(
    house: House, fresh_database: Settings
) -> None:
    over, young = await house.put(b"over"), await house.put(b"young")
    first = house.stored(over, expires_at=PAST)
    root = await house.execution(first, house.stored(young))
    await settled(house.log.pool)
    assert await end_results(house.ports, grace=HOUR) == {}, "nothing was projected"
    await project(fresh_database, root, first, "execution")
    assert await end_results(house.ports, grace=HOUR) == {"ttl": 1}
    await settled(house.log.pool)
    assert await end_results(house.ports, grace=HOUR) == {}
    assert await ends(house, root) == ["ttl"]


async def test_the_role_ends_results_and_sweeps_by_itself(
    house: House, fresh_database: Settings, tmp_path: Path
) -> None:
    root = await house.execution(house.stored(await house.put(b"over"), expires_at=PAST))
    await settled(house.log.pool)
    store = fresh_database.payload_store
    place = store.connection.model_copy(update={"path": str(house.folder)})
    chosen = store.model_copy(update={"backend": "local", "connection": place})
    settings = fresh_database.model_copy(update={"payload_store": chosen})
    stop, ready = asyncio.Event(), asyncio.Event()
    going = asyncio.create_task(run(settings, tmp_path, stop, ready.set))
    async with asyncio.timeout(20):
        await ready.wait()
        while await house.ports.ledger.swept_ago() is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        stop.set()
        await going
    assert await ends(house, root) == ["ttl"]
