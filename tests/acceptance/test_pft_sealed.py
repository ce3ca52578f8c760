"""The PFT workload with sealed memory, while its broker is killed and every copy is deleted."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from streams.data_folder import layout_of
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftRun, run_pft
from streams.dev.bench.tier_reads import hit_ratio, reads_of_others
from streams.local.settings import stack_settings
from streams.local.stack import running
from streams.roles.start import existing_roles, node_roles
from streams.settings import Settings, load
from tests.support.payload.cache_loss import losing_copies
from tests.support.payload.frame_outputs import assert_frames_are_kept

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
CARRIER = "STREAMS__PAYLOAD_STORE__CACHE__TIER_15_CARRIER"
WORLD = MockWorld(facilities=1, patients=30, rows_per_page=1)


async def test_losing_the_broker_and_every_copy_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CARRIER, "memfd")
    env = {CARRIER: "memfd"}
    names = (*node_roles(load(env=env).settings), *existing_roles())
    async with running(tmp_path, roles=dict.fromkeys(names, 1)) as stack:
        settings = load(env=env, stack=stack_settings(stack)).settings

        quiet = await run_pft(
            settings, stack.data, world=WORLD, frame_size=10, timeout_s=5.0, say=print
        )
        sealed = _tier_stats(stack.data, "worker-0")["events"].get("sealed", 0)
        before = reads_of_others(stack.data)
        async with losing_copies(settings, stack.data) as lost:
            disturbed = await run_pft(
                settings, stack.data, world=WORLD, frame_size=10, timeout_s=5.0, say=print
            )

        await assert_nothing_is_missing(settings, quiet)
        await assert_nothing_is_missing(settings, disturbed)
        assert hit_ratio(quiet.reads) > 0.6
        assert sealed >= quiet.counts.frames
        assert lost.brokers > 0
        assert (reads_of_others(stack.data) - before)["3"] > 0


def _tier_stats(data: Path, role: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = orjson.loads(layout_of(data).tiers(role).read_bytes())
    return found


async def assert_nothing_is_missing(settings: Settings, run: PftRun) -> None:
    """Hold that every row was saved once, and that every frame's rows were read."""
    assert run.faults("playbook") == []
    assert run.judgement.saved == run.judgement.expected > 0
    await assert_frames_are_kept(settings, run.ended.execution_id, run.counts.commits)
