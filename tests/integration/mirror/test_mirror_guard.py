"""The guard on a real mirror that somebody damages."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import asyncpg
import orjson
import pytest

from streams.app import Log
from streams.local.state import find_stack
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorFailed
from streams.mirror.guard import SLOT, Guard
from streams.mirror.readings import AlarmName
from streams.mirror.rebuild import rebuild
from streams.mirror.setup import MIRROR
from streams.mirror.watch import report_alarms
from streams.mirror.watermark import Watermark
from streams.settings import Settings
from tests.conftest import NewEventFactory

pytestmark = pytest.mark.stack

NOTICED_WITHIN_S = 10.0
_END_READER = """
SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
WHERE slot_name = $1 AND active_pid IS NOT NULL
"""


@pytest.fixture
async def mirror(settings: Settings) -> AsyncIterator[Settings]:
    """A mirror that may be damaged: it is rebuilt afterwards."""
    async with Guard(settings) as guard:
        assert await guard.check() == ()
        yield settings
        if await guard.check():
            await rebuild(settings, lambda _: None, verify=False)
        assert await guard.check() == ()


async def end_reader(settings: Settings) -> None:
    """End the connection that reads the slot."""
    connection = await asyncpg.connect(settings.event_store.canonical_connection.dsn("mirror"))
    try:
        await connection.execute(_END_READER, SLOT)
    finally:
        await connection.close()


async def drop_slot(settings: Settings, *, recreate: bool = False) -> None:
    """Drop the slot though somebody reads it, and perhaps make another of the same name."""
    dsn = settings.event_store.canonical_connection.dsn("mirror")
    connection = await asyncpg.connect(dsn)
    try:
        async with asyncio.timeout(10):
            while await connection.fetchval(
                "SELECT 1 FROM pg_replication_slots WHERE slot_name = $1", SLOT
            ):
                await connection.execute(_END_READER, SLOT)
                try:
                    await connection.execute("SELECT pg_drop_replication_slot($1)", SLOT)
                except asyncpg.ObjectInUseError:
                    continue
        if recreate:
            make = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')"
            await connection.execute(make, SLOT)
    finally:
        await connection.close()


async def raised(
    settings: Settings, name: AlarmName, damage: Callable[[], Awaitable[None]]
) -> None:
    """Return when a watch tells the alarm; it has only so long after the damage."""
    reported = asyncio.Event()

    def hear(line: str) -> None:
        if line.startswith(f"mirror: ALARM {name}: "):
            reported.set()

    following = asyncio.create_task(report_alarms(settings, hear))
    try:
        await damage()
        async with asyncio.timeout(NOTICED_WITHIN_S):
            await reported.wait()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_dropped_slot_is_told_in_time(mirror: Settings) -> None:
    await raised(mirror, AlarmName.SLOT_MISSING, lambda: drop_slot(mirror))


async def test_a_slot_recreated_under_a_running_connector_is_told_in_time(
    mirror: Settings,
) -> None:
    await raised(mirror, AlarmName.SLOT_RECREATED, lambda: drop_slot(mirror, recreate=True))


async def test_a_connector_does_not_go_on_over_the_gap_of_a_recreated_slot(
    mirror: Settings, log: Log, new_event: NewEventFactory
) -> None:
    """What Debezium refuses stays refused, so the alarm is there for whoever looks later."""
    async with ConnectClient(mirror.connect.url) as connect, Guard(mirror) as guard:
        await connect.stop(MIRROR)
        await connect.wait_until_stopped(MIRROR)
        await log.store.append([new_event(log.ids.next())])
        await drop_slot(mirror, recreate=True)
        assert AlarmName.SLOT_RECREATED in {alarm.name for alarm in await guard.check()}
        await connect.resume(MIRROR)
        with pytest.raises(ConnectorFailed, match="no longer available on the server"):
            await _run_until_it_fails(connect)
        names = {alarm.name for alarm in await guard.check()}
        assert {AlarmName.SLOT_RECREATED, AlarmName.TASK_FAILED} <= names


async def test_a_recreated_slot_is_noticed_though_connect_is_down(mirror: Settings) -> None:
    nobody = mirror.connect.model_copy(update={"url": "http://127.0.0.1:9"})
    blind = mirror.model_copy(update={"connect": nobody})
    async with ConnectClient(mirror.connect.url) as connect, Guard(blind) as guard:
        await connect.stop(MIRROR)
        await connect.wait_until_stopped(MIRROR)
        await drop_slot(mirror, recreate=True)
        names = {alarm.name for alarm in await guard.check()}
    assert names == {AlarmName.SLOT_RECREATED, AlarmName.CONNECT_UNREACHABLE}


async def test_a_task_that_failed_for_good_is_restarted(mirror: Settings) -> None:
    """The stack restarts it once its cause is gone, and nobody has to run a command."""
    owner = await asyncpg.connect(mirror.event_store.canonical_connection.dsn("owner"))
    async with ConnectClient(mirror.connect.url) as connect:
        try:
            await owner.execute("ALTER PUBLICATION noetl_mirror RENAME TO renamed")
            await end_reader(mirror)
            with pytest.raises(ConnectorFailed, match="Publication"):
                await _run_until_it_fails(connect)
        finally:
            await owner.execute("ALTER PUBLICATION renamed RENAME TO noetl_mirror")
            await owner.close()
        dsn = mirror.event_store.canonical_connection.dsn("append")
        async with Watermark(dsn, mirror.event_store.connection.url) as watermark:
            await watermark.catch_up(timeout_s=60)


async def test_a_stopped_connector_is_an_alarm_until_it_runs_again(mirror: Settings) -> None:
    async with ConnectClient(mirror.connect.url) as connect, Guard(mirror) as guard:
        await connect.stop(MIRROR)
        await connect.wait_until_stopped(MIRROR)
        assert [alarm.name for alarm in await guard.check()] == [AlarmName.CONNECTOR_STOPPED]
        await connect.resume(MIRROR)
        await connect.wait_until_running(MIRROR)
        assert await guard.check() == ()


async def test_a_mirror_at_work_raises_no_false_alarm(
    mirror: Settings, log: Log, new_event: NewEventFactory
) -> None:
    """Transactions come and go all the time, and the guard looks in between."""
    root_id, enough = log.ids.next(), asyncio.Event()

    async def append() -> None:
        while not enough.is_set():
            await log.store.append([new_event(root_id, idempotency_key=uuid4().hex)])

    appending = asyncio.create_task(append())
    try:
        async with Guard(mirror) as guard:
            for _ in range(30):
                alarms = await guard.check()
                assert {alarm.name for alarm in alarms} <= {AlarmName.MIRROR_BEHIND}
    finally:
        enough.set()
        await appending


async def test_the_check_command_names_the_alarm_and_exits_with_seven(mirror: Settings) -> None:
    stack = find_stack(Path(mirror.connect.secrets_dir or "").parent)
    if stack is None:
        pytest.skip("the command finds an embedded stack by its folder")
    assert await _check(stack.data) == (0, {"ok": True, "alarms": []})
    await drop_slot(mirror)
    code, report = await _check(stack.data)
    assert code == 7
    assert "slot_missing" in [alarm["name"] for alarm in report["alarms"]]
    assert all(alarm["what"] and alarm["remedy"] for alarm in report["alarms"])


async def _run_until_it_fails(connect: ConnectClient) -> None:
    """It may be seen running for a moment, before it has looked at the slot."""
    while True:
        await connect.wait_until_running(MIRROR)


async def _check(data: Path) -> tuple[int | None, dict[str, object]]:
    code = "from streams.cli import main; main()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "mirror", "check", "--json", "--data", str(data)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return process.returncode, orjson.loads(output)
