"""Projectors that are killed, and share their shards with a second one: rows equal the replay.

`STREAMS_TEST_KILLS=10` makes the run longer than in CI.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from streams.app import open_audits, open_business_parity
from streams.cli import cli
from streams.dev.bench.mock_server import mock_server
from streams.payload.port import Scope
from streams.replay.checks import Status
from tests.support.servers.pft_load import WORLD, PftLoad
from tests.support.servers.runtime import Runtime
from tests.support.servers.second_role import second_role

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]
KILLS = int(os.environ.get("STREAMS_TEST_KILLS", "2"))
SHARDS = """
SELECT count(DISTINCT shard_id) FROM noetl.projection_checkpoint
WHERE topic = 'noetl.events.execution' AND shard_id IN ('projector-0', 'projector-9')"""
PROJECTED = """
SELECT last_seq >= $2 AND (SELECT bool_and(last_seq >= $2) FROM noetl.business_progress
                           WHERE execution_id = $1)
FROM noetl.execution WHERE execution_id = $1"""


@pytest.fixture
def runtime(own_runtime: Runtime) -> Runtime:
    """The run's own: nobody else's parts are killed."""
    return own_runtime


async def test_rows_equal_the_replay_though_projectors_die_and_shards_move(
    runtime: Runtime,
) -> None:
    async with mock_server(WORLD) as mock:
        load = PftLoad(runtime, mock, "shards")
        await load.running()
        async with second_role(runtime, "projector-9") as second:
            for _ in range(KILLS):
                await load.running()
                await runtime.kill("projector-0")
            await load.running()
            await runtime.until(f"SELECT ({SHARDS}) = 2")
            shared = await _shards(runtime)
            assert {"projector-0", "projector-9"} <= shared.keys()
            second.send_signal(signal.SIGKILL)  # its shards go to the other one
            await second.wait()
            await load.running()
            await load.check()
    for execution_id in load.started:
        await runtime.until(PROJECTED, execution_id, await runtime.seq(execution_id))
    await _assert_equal(runtime, load.started)
    behind = [one for one in (await _shards(runtime)).values() if one["messages"]]
    assert behind == []


async def _shards(runtime: Runtime) -> dict[str, Any]:
    """Return the lag of each shard by its name, as an operator reads it."""
    words = ["projections", "shards", "--data", str(runtime.data), "--json"]
    done = await asyncio.to_thread(CliRunner().invoke, cli, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return {one["shard_id"]: one for one in orjson.loads(done.stdout)["shards"]}


async def _assert_equal(runtime: Runtime, executions: list[int]) -> None:
    settings = runtime.settings
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    async with (
        open_audits(settings, payloads=False) as opened,
        open_business_parity(settings) as business,
    ):
        for execution_id in executions:
            report = await opened.audit.run(execution_id, scope)
            checks = [*report.checks, *await business.compare(execution_id, scope)]
            assert [one for one in checks if one.status is Status.FAILED] == []
            passed = {one.name for one in checks if one.status is Status.PASSED}
            assert {"execution", "stage", "frame", "patients_per_facility v1"} <= passed
