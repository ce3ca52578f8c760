"""Planners lose their disks, their changelogs and their partitions under load: rows stay exact.

`STREAMS_TEST_WIPES=10 STREAMS_TEST_PAUSE_S=60` make the run longer than in CI.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from streams.data_folder import layout_of
from streams.dev.bench.mock_server import Mock, MockWorld, mock_server
from streams.dev.bench.row_check import RowCheck
from streams.kafka.topic_ids import BrokerTopicIds
from streams.topology.broker import TopicAdmin
from tests.support.servers.runtime import FRAMES_ARE_OPEN_OR_ALL_IS_OVER, Runtime, pft
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]

WIPES = int(os.environ.get("STREAMS_TEST_WIPES", "2"))
PAUSE_S = float(os.environ.get("STREAMS_TEST_PAUSE_S", "20"))
"""Longer than the session of 15 s."""
SECOND = "planner-9"
WORLD = MockWorld(facilities=2, patients=30, latency_ms=100)
ROWS = 60 * 12 + 24
CHANGELOGS = [f"noetl.planner-{name}-changelog" for name in ("executions", "stages", "frames")]
DECISIONS = """
SELECT count(*), count(DISTINCT (meta->>'frame_id', meta->>'attempt')) FROM noetl.event
WHERE root_id = $1 AND event_type = 'frame.dispatched'"""


@pytest.fixture
def runtime(own_runtime: Runtime) -> Runtime:
    """The run's own: nobody else's parts are killed."""
    return own_runtime


async def test_rows_are_exact_though_planners_lose_all_they_have(runtime: Runtime) -> None:
    async with mock_server(WORLD) as mock, _second_planner(runtime) as second:
        load = _Load(runtime, mock)
        for _ in range(WIPES):
            await load.running()
            await _wiped(runtime)
        await load.running()
        broker = TopicAdmin(runtime.settings.event_store.connection.url)
        await asyncio.to_thread(broker.delete, CHANGELOGS)
        await load.running()
        second.send_signal(signal.SIGSTOP)
        for _ in range(int(PAUSE_S)):
            await load.running()
            await asyncio.sleep(1)
        second.send_signal(signal.SIGCONT)
        await load.running()
        await load.check()
        await until(lambda: _have_changelogs(runtime), within_s=60)
        assert second.returncode is None, "the planner that was paused has ended"


class _Load:
    """Runs the PFT playbook again and again."""

    def __init__(self, runtime: Runtime, mock: Mock) -> None:
        self._runtime, self._mock = runtime, mock
        self._started: list[int] = []

    async def running(self) -> None:
        """Return once an execution is under way: one that is killed thrice is suspended."""
        if not self._started or await self._runtime.has_ended(self._started[-1]):
            workload = {"facilities": WORLD.facilities, "patients": WORLD.patients, "timeout_s": 5}
            schema = f"lost_{len(self._started)}"
            self._started.append(
                await self._runtime.start(
                    pft("test/lost", 5), api_url=self._mock.url, schema=schema, **workload
                )
            )
        await self._runtime.until(FRAMES_ARE_OPEN_OR_ALL_IS_OVER, self._started[-1])

    async def check(self) -> None:
        """Check the rows and decisions of everything that was started."""
        for number, execution_id in enumerate(self._started):
            ended = await self._runtime.finish(execution_id)
            assert ended.status == "COMPLETED"
            found = await self._runtime.check_rows(self._mock, f"lost_{number}")
            assert found == RowCheck(expected=ROWS, saved=ROWS)
            row = await self._runtime.executions.connection.fetchrow(DECISIONS, execution_id)
            assert row is not None
            assert row[0] == row[1], "two planners decided the same"


@asynccontextmanager
async def _second_planner(runtime: Runtime) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run another planner of the group, as `streams run` does."""
    log = layout_of(runtime.data).roles / f"{SECOND}.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streams", "run", "planner", "--data", str(runtime.data)),
            env={**os.environ, "NOETL_SHARD_ID": SECOND},
            stdout=output,
            stderr=output,
        )
    try:
        await until(lambda: b"ready" in log.read_bytes(), within_s=60)
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        await process.wait()


async def _wiped(runtime: Runtime) -> None:
    """Kill the first planner and delete its disk before it is started again."""
    folder = layout_of(runtime.data).roles / "planner-0" / "faust"
    assert folder.is_dir()
    pid = runtime.part("planner-0").pid
    assert pid is not None
    killing = asyncio.create_task(runtime.kill("planner-0"))
    await until(lambda: not _is_running(pid), within_s=60, every_s=0.005)
    shutil.rmtree(folder)
    await killing


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _have_changelogs(runtime: Runtime) -> bool:
    ids = await BrokerTopicIds(runtime.settings.event_store.connection.url).topic_ids(CHANGELOGS)
    return None not in ids.values()
