"""The PFT workload with sealed memory, while its broker is killed and every copy is deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from streams.data_folder import layout_of
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftBench, PftRun
from streams.dev.bench.tier_reads import hit_ratio, reads_of_others
from streams.local.settings import stack_settings
from streams.local.stack import running
from streams.roles.start import existing_roles, node_roles
from streams.settings import Settings, load
from tests.support.payload.cache_loss import losing_copies
from tests.support.payload.frame_outputs import assert_frames_are_kept

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
CARRIER = "STREAMS__PAYLOAD_STORE__CACHE__TIER_15_CARRIER"
RUNS, REST_S = 3, 10.0
WORLD = MockWorld(facilities=1, patients=30, rows_per_page=1)


async def test_losing_the_broker_and_every_copy_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CARRIER, "memfd")
    env = {CARRIER: "memfd"}
    names = (*node_roles(load(env=env).settings), *existing_roles())
    async with running(tmp_path, roles=dict.fromkeys(names, 1)) as stack:
        settings = load(env=env, stack=stack_settings(stack)).settings

        bench = PftBench(settings, stack.data, timeout_s=5.0, say=print)
        quiet = await _quiet_run(bench)
        sealed = await _sealed(stack.data, quiet.counts.frames)
        before = reads_of_others(stack.data)
        async with losing_copies(settings, stack.data) as lost:
            disturbed = await bench.run(WORLD, frame_size=10)

        await assert_nothing_is_missing(settings, quiet)
        await assert_nothing_is_missing(settings, disturbed)
        assert hit_ratio(quiet.reads) > 0.6
        assert sealed >= quiet.counts.frames
        assert lost.brokers > 0
        assert (reads_of_others(stack.data) - before)["3"] > 0


async def _quiet_run(bench: PftBench) -> PftRun:
    """Run until readers use the broker: one that answered late is not asked for ten seconds."""
    for _ in range(RUNS):
        quiet = await bench.run(WORLD, frame_size=10)
        if hit_ratio(quiet.reads) > 0.6:
            break
        await asyncio.sleep(REST_S)
    return quiet


async def _sealed(data: Path, expected: int) -> int:
    """Return the regions that the worker sealed, once it has reported as many as expected."""
    for _ in range(int(REST_S / 0.1)):
        stats = orjson.loads(layout_of(data).tiers("worker-0").read_bytes())
        sealed: int = stats["events"].get("sealed", 0)
        if sealed >= expected:
            break
        await asyncio.sleep(0.1)
    return sealed


async def assert_nothing_is_missing(settings: Settings, run: PftRun) -> None:
    """Hold that every row was saved once, and that every frame's rows were read."""
    assert run.faults("playbook") == []
    assert run.judgement.saved == run.judgement.expected > 0
    await assert_frames_are_kept(settings, run.ended.execution_id, run.counts.commits)
