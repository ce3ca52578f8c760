"""Planners lose their disks, their changelogs and their partitions under load: rows stay exact.

`STREAMS_TEST_WIPES=10 STREAMS_TEST_PAUSE_S=60` make the run longer than in CI.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal

import pytest

from streams.data_folder import layout_of
from streams.dev.bench.mock_server import mock_server
from streams.kafka.topic_ids import BrokerTopicIds
from streams.topology.broker import TopicAdmin
from tests.support.servers.pft_load import WORLD, PftLoad
from tests.support.servers.runtime import Runtime
from tests.support.servers.second_role import second_role
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]

WIPES = int(os.environ.get("STREAMS_TEST_WIPES", "2"))
PAUSE_S = float(os.environ.get("STREAMS_TEST_PAUSE_S", "20"))
"""Longer than the session of 15 s."""
CHANGELOGS = [f"noetl.planner-{name}-changelog" for name in ("executions", "stages", "frames")]


@pytest.fixture
def runtime(own_runtime: Runtime) -> Runtime:
    """The run's own: nobody else's parts are killed."""
    return own_runtime


async def test_rows_are_exact_though_planners_lose_all_they_have(runtime: Runtime) -> None:
    async with mock_server(WORLD) as mock, second_role(runtime, "planner-9") as second:
        load = PftLoad(runtime, mock, "lost")
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
