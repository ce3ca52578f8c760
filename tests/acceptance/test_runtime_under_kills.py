"""Worker, planner, projector and broker are killed while playbooks run: every row is there once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest

from streams.bench.judge import Judgement
from streams.bench.mock import World, mock_server
from tests.agreement import live_and_folded
from tests.runtime import PATIENCE_S, Runtime, pft, whole_runtime

logger = logging.getLogger(__name__)
pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

KILLED = ("worker-0", "planner-0", "projector-0", "kafka")
WORLD = World(facilities=2, patients=30, latency_ms=20)
FRAME_SIZE = 5


@pytest.fixture(scope="module")
async def runtime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        async with whole_runtime(tmp_path_factory.mktemp("killed"), patch) as made:
            yield made


async def test_rows_are_exact_though_every_part_is_killed_twice_while_they_are_fetched(
    runtime: Runtime,
) -> None:
    started: list[int] = []
    async with mock_server(WORLD) as mock:
        for name in KILLED * 2:
            if not started or await runtime.has_ended(started[-1]):
                started.append(await _start(runtime, mock.url, number=len(started)))
            await _goes_on(runtime, started[-1])
            logger.info("%s was killed and back after %.1f s", name, await runtime.kill(name))
        ended = [await runtime.finish(execution_id) for execution_id in started]
        judged = [await runtime.judge(mock, f"killed_{n}") for n in range(len(started))]

    assert [one.status for one in ended] == ["COMPLETED"] * len(started)
    rows = 60 * 12 + 24
    assert judged == [Judgement(expected=rows, saved=rows)] * len(started)
    for execution_id in started:
        live, folded = await live_and_folded(
            runtime.settings, execution_id, await runtime.seq(execution_id)
        )
        assert live == folded
        assert [row["status"] for row in live["execution"]] == ["COMPLETED"]


async def _start(runtime: Runtime, url: str, number: int) -> int:
    workload = {"facilities": WORLD.facilities, "patients": WORLD.patients, "timeout_s": 5}
    return await runtime.start(
        pft("test/killed", FRAME_SIZE), api_url=url, schema=f"killed_{number}", **workload
    )


async def _goes_on(runtime: Runtime, execution_id: int) -> None:
    """Wait for some more events: this is how long an execution waits once the parts are back."""
    began, seen = time.monotonic(), await runtime.seq(execution_id)
    while await runtime.seq(execution_id) < seen + 4 and not await runtime.has_ended(execution_id):
        assert time.monotonic() - began < PATIENCE_S, f"execution {execution_id} waits at {seen}"
        await asyncio.sleep(0.02)
