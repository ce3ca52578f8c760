"""A worker counts its claims, frames and rows once each."""

from __future__ import annotations

from streams.clock import SettableClock
from streams.metrics.metric import Distribution, Sample
from streams.worker.counts import P95_WINDOW_S, WorkCounts
from tests.support.planner.with_worker import whole

LOOP = """
metadata: {path: tests/counted}
workflow:
  - step: start
    loop: {in: "{{ range(25) | list }}", iterator: n, frame_policy: {size: 10}}
    tool: [{rest: {kind: noop}}]
"""


def value_of(counts: WorkCounts, name: str, *labels: str) -> float | Distribution:
    (found,) = [one for one in counts.samples() if _key(one) == (name, *labels)]
    return found.value


def _key(one: Sample) -> tuple[str, ...]:
    return (one.metric.name, *one.labels)


async def test_frames_of_a_run_are_counted_with_their_rows() -> None:
    async with whole(LOOP) as made:
        assert (await made.result()).status == "COMPLETED"
        counts = made.counts

        assert value_of(counts, "noetl_frames_total", "committed") == 3
        assert value_of(counts, "noetl_frames_total", "failed") == 0
        assert value_of(counts, "noetl_frame_rows_total", "done") == 25
        claims = value_of(counts, "noetl_claim_seconds", "frame", "claimed")
        assert isinstance(claims, Distribution)
        assert sum(claims.counts) == 3


def test_the_95th_percentile_is_of_the_last_five_minutes() -> None:
    clock = SettableClock()
    counts = WorkCounts(clock.monotonic)
    for seconds in range(1, 101):
        counts.committed(1, float(seconds))
    counts.committed(0, 1.0)

    assert value_of(counts, "frame_p95_lease_duration") == 95
    assert value_of(counts, "noetl_frames_total", "empty") == 1
    clock.advance(P95_WINDOW_S + 1)
    assert value_of(counts, "frame_p95_lease_duration") == 0
    lasting = value_of(counts, "noetl_frame_lease_seconds")
    assert isinstance(lasting, Distribution)
    assert sum(lasting.counts) == 101
