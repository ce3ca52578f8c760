"""The payload bench: its figures come from a real S3, and its process stays small."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.dev.bench.payload import bench_payload
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_the_bench_measures_and_cleans_up(settings: Settings, tmp_path: Path) -> None:
    report = await bench_payload(
        settings, tmp_path, megabytes=64, small=20, same=8, say=lambda _: None
    )
    assert report.faults == ()
    figures = report.figures
    for name in ("put_mb_per_s", "get_mb_per_s", "small_puts_per_s", "raw_put_mb_per_s"):
        assert figures[name] > 0  # type: ignore[operator]
    assert figures["objects_of_same"] == 1
    assert figures["peak_rss_mb"] < 128  # type: ignore[operator]
