"""The bench of tables runs on a real broker, with stock Faust beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.dev.bench.tables import bench_tables
from streams.settings import Settings

pytestmark = pytest.mark.stack
FIGURES = {
    *("keys", "put_us", "get_us", "rebuild_s", "rebuild_cpu_s", "rebuild_disk_s"),
    *("batch_us_per_event", "counted_records", "aborted_records", "kills"),
    *("lost", "doubled", "wrong_keys", "takeover_s", "takeover_standby_s"),
    *("faust_us_per_event", "faust_rebuild_s", "faust_rebuild_cpu_s"),
    *("rebuild_ratio_to_faust", "rebuild_cpu_ratio_to_faust"),
}
NONE_OF_THESE = {"lost", "doubled", "wrong_keys"}


@pytest.mark.timeout(900)  # starts a dozen processes, and waits for sessions to end
async def test_a_small_bench_of_tables_is_exact(settings: Settings, tmp_path: Path) -> None:
    said: list[str] = []

    report = await bench_tables(settings, tmp_path, keys=2000, say=said.append)

    assert report.faults == ()
    assert report.figures.keys() == FIGURES
    assert {name: report.figures[name] for name in NONE_OF_THESE} == dict.fromkeys(NONE_OF_THESE, 0)
    for name in FIGURES - NONE_OF_THESE:
        assert report.figures[name] > 0, name  # type: ignore[operator]
    assert said[0] == "writing 2,000 keys"
    assert os.listdir(tmp_path) == []
