"""The bench of the mirror runs on a real stack and answers with the promised figures."""

import pytest

from streams.dev.bench.mirror import bench_mirror
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_a_small_bench_has_every_figure_and_no_fault(settings: Settings) -> None:
    said: list[str] = []

    report = await bench_mirror(settings, events=400, rounds=1, seconds=1, say=said.append)

    assert report.faults == ()
    assert set(report.figures) == {
        "events_per_s",
        "plain_rows_per_s",
        "ratio_to_plain",
        "p50_ms",
        "p99_ms",
        "lost",
        "doubled",
    }
    assert report.figures["events_per_s"] > 0
    assert 0 < report.figures["p50_ms"] <= report.figures["p99_ms"]
    assert said[0].startswith("round 1 of 1")
