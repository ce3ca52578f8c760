"""The bench of appends runs on a real stack and answers with the promised figures."""

from pathlib import Path

import pytest

from streams.dev.bench.append import bench_append
from streams.events.native import native
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_a_small_bench_has_every_figure_and_no_fault(
    settings: Settings, tmp_path: Path
) -> None:
    said: list[str] = []

    report = await bench_append(settings, tmp_path, events=400, rounds=1, say=said.append)

    assert report.faults == ()
    assert set(report.figures) == {
        "batch_events_per_s",
        "copy_rows_per_s",
        "ratio_to_copy",
        "single_events_per_s",
        "fsync_per_s",
        "ratio_single_to_fsync",
        "append_fsync_per_s",
        "ratio_single_to_append_fsync",
        "commits_per_fsync",
        "sealer",
    }
    assert report.figures["sealer"] == ("python" if native() is None else "native")
    assert report.figures["commits_per_fsync"] > 1, "64 callers must share commits"
    assert said[0].startswith("round 1 of 1")
