"""The bench of shared memory runs in two processes on a real stack."""

import pytest

from streams.dev.bench.ipc import bench_ipc
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_a_small_bench_has_every_figure_and_no_fault(settings: Settings) -> None:
    report = await bench_ipc(settings, megabytes=1, rounds=1, say=print)

    assert report.faults == ()
    assert set(report.figures) >= {"attach_us", "read_gb_per_s", "ratio_tier15_to_tier3"}


async def test_without_a_budget_it_says_so(settings: Settings) -> None:
    store = settings.payload_store
    cache = store.cache.model_copy(update={"tier_15_node_budget_mb": 0})
    without = settings.model_copy(
        update={"payload_store": store.model_copy(update={"cache": cache})}
    )

    report = await bench_ipc(without, megabytes=1, rounds=1, say=print)

    assert "budget" in report.faults[0]
