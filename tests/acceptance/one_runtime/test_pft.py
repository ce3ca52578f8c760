"""The PFT workload, end to end on a stack with all roles, judged by the server's ledger."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from examples.pft.world import World
from streams.dev.bench.frames import bench_frames
from streams.dev.bench.latency import HOPS, LAST_HOP, bench_latency
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftBench
from streams.dev.bench.tier_reads import reads_of_others
from streams.settings import Settings
from tests.support.payload.frame_outputs import assert_frames_are_kept
from tests.support.projector.live_business import replayed_projection
from tests.support.replay.audited import assert_it_can_be_proven
from tests.support.servers.runtime import Runtime

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
PROMISED = {
    *("requests", "expected_rows", "saved_rows", "missing", "doubled", "wall_s", "rows_per_s"),
    *("plain_rows_per_s", "ratio_to_plain", "cursor_rows", "frames", "rows_per_frame", "claims"),
    *("events", "events_per_frame", "claims_ratio_to_frame_size_1"),
    *("events_ratio_to_frame_size_1", "tier3_bytes", "commits", "peak_db_connections"),
    *("peak_rss_mb", "status", "tier15_hit_ratio", "reads_per_frame"),
}


async def test_every_row_is_saved_once_though_the_server_is_busy_and_silent(
    runtime: Runtime, tmp_path: Path
) -> None:
    world = MockWorld(
        facilities=2, patients=50, rows_per_page=2, error_rate=0.05, timeout_rate=0.01
    )

    bench = PftBench(runtime.settings, runtime.data, timeout_s=1.0, say=print)
    report = await bench.compare(world, frame_size=50)

    figures = report.figures
    assert report.faults == ()
    assert set(figures) >= PROMISED
    assert figures["status"] == "COMPLETED"
    assert figures["saved_rows"] == figures["expected_rows"] == 100 * 12 * 2 + 40
    assert figures["requests"] == 100 * 12 + 40 + _int(figures["retries"])
    assert _int(figures["retries"]) > 0
    assert (figures["cursor_rows"], figures["frames"], figures["claims"]) == (540, 11, 11)
    assert _float(figures["events_ratio_to_frame_size_1"]) < 0.1
    assert _int(figures["peak_db_connections"]) < 20
    assert figures["commits"] == figures["frames"]
    execution_id = int(str(figures["execution_id"]))
    await assert_frames_are_kept(runtime.settings, execution_id, _int(figures["commits"]))
    await assert_it_can_be_proven(runtime, execution_id, tmp_path)
    assert _float(figures["reads_per_frame"]) >= 1
    assert _float(figures["tier15_hit_ratio"]) > 0.6


async def test_losing_shared_memory_and_disk_again_and_again_changes_no_result(
    runtime: Runtime,
) -> None:
    async def lose() -> None:
        while True:
            await asyncio.to_thread(_lose_caches, runtime.settings)
            await asyncio.sleep(0.02)

    world = MockWorld(facilities=1, patients=30, rows_per_page=1)
    before = reads_of_others(runtime.data)
    bench = PftBench(runtime.settings, runtime.data, timeout_s=5.0, say=print)
    losing = asyncio.create_task(lose())
    try:
        run = await bench.run(world, frame_size=10)
    finally:
        losing.cancel()
        await asyncio.gather(losing, return_exceptions=True)

    assert run.faults("playbook") == []
    assert run.judgement.saved == run.judgement.expected > 0
    await assert_frames_are_kept(runtime.settings, run.ended.execution_id, run.counts.commits)
    assert (reads_of_others(runtime.data) - before)["3"] > 0
    # Four pages of assessments for each of 30 patients: the ledger above has no other requests.
    ((key, values),) = await replayed_projection(
        runtime.settings, run.ended.execution_id, "patients_per_facility"
    )
    assert (key, values["patients"], values["pages"]) == ([1], 30, 30 * 4)
    last_pages = [World(patients=30).keys("assessments", 1, n, 4)[-1] for n in range(1, 31)]
    assert values["last_value"] in {text for _, text in last_pages}


async def test_latency_is_told_hop_by_hop(runtime: Runtime) -> None:
    report = await bench_latency(runtime.settings, executions=5, say=print)

    assert report.faults == ()
    assert report.figures["executions"] == 5
    hops = report.figures["hops_ms"]
    assert isinstance(hops, dict)
    assert list(hops) == [*HOPS, LAST_HOP]
    assert 0 < _float(report.figures["p50_ms"]) <= _float(report.figures["p99_ms"])


async def test_trivial_frames_are_counted_with_their_processor_time(
    runtime: Runtime,
) -> None:
    report = await bench_frames(runtime.settings, runtime.data, frames=100, say=print)

    assert report.faults == ()
    assert report.figures["frames"] == 100
    spent = report.figures["cpu_ms_per_frame"]
    assert isinstance(spent, dict)
    assert {"worker-0", "planner-0", "postgres"} <= set(spent)


def _lose_caches(settings: Settings) -> None:
    cache = settings.payload_store.cache
    for region in Path(cache.tier_15_path).glob(f"noetl-{os.geteuid()}-*"):
        region.unlink(missing_ok=True)
    shutil.rmtree(cache.tier_2_disk_path, ignore_errors=True)


def _int(figure: object) -> int:
    assert isinstance(figure, int)
    return figure


def _float(figure: object) -> float:
    assert isinstance(figure, float)
    return figure
