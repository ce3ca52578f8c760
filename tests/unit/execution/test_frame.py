"""The fold of a frame's own events."""

from __future__ import annotations

from datetime import UTC, datetime

from streams.events.types import FrameDispatched
from streams.execution.frame import absorb_frame

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def dispatched(attempt: int) -> FrameDispatched:
    return FrameDispatched(
        node_name="each",
        frame_id=1,
        stage_id=2,
        loop_id=3,
        attempt=attempt,
        ordinal=0,
        pool="cpu",
        cursor={},
        ctx_elsewhere=[],
    )


def test_a_frame_dispatched_again_reads_the_spilled_context_like_the_first_time() -> None:
    first = absorb_frame(None, dispatched(1), NOW)
    again = absorb_frame(first, dispatched(2), NOW)
    assert first.ctx_elsewhere is None
    assert again.ctx_elsewhere == first.ctx_elsewhere
