"""Events that benches append: frame commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

from streams.events.locator import Locator
from streams.events.model import NewEvent, PayloadRef, Root
from streams.events.types import FrameCommitted

TENANT, ORGANIZATION = "bench", "bench"
_SHA256 = "5a" * 32
_REFERENCE = PayloadRef(
    uri=str(Locator.payload(TENANT, ORGANIZATION, _SHA256)),
    sha256=_SHA256,
    media_type="application/vnd.apache.arrow.stream",
    byte_length=48_213,
    row_count=50,
    schema_digest="c3" * 32,
    compression="zstd",
)
_numbers = count(1)


def frame_commits(next_id: Callable[[], int], *, events: int, roots: int) -> list[NewEvent]:
    """Return `events` commits of frames, spread evenly over new executions."""
    executions = [next_id() for _ in range(roots)]
    return [_commit(executions[index % roots], next_id()) for index in range(events)]


def _commit(execution: int, frame: int) -> NewEvent:
    committed = FrameCommitted(
        node_name="fetch_patients",
        status="ok",
        frame_id=frame,
        stage_id=execution + 1,
        loop_id=execution + 2,
        attempt=1,
        worker="cpu-01",
        rows=50,
        failed_rows=0,
        continues=False,
        saved={"rows": 50, "requests": 600},
        payload_ref=_REFERENCE,
    )
    return NewEvent(
        root=Root("execution", execution),
        tenant_id=TENANT,
        organization_id=ORGANIZATION,
        idempotency_key=f"{execution}/frame/{frame}/committed/{next(_numbers)}",
        event_time=datetime.now(UTC),
        causation_id=frame,
        **committed.columns(),
    )
