"""Events of one execution of any length: a loop over many patients, in frames of 50 rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice

from streams.events.locator import Locator
from streams.events.model import Json, NewEvent, PayloadRef
from streams.events.types import (
    AnyEvent,
    FrameDispatched,
    LoopStarted,
    StageOpened,
    StepEnter,
    WorkflowInitialized,
)
from streams.execution.attempts import FrameAttempt, FrameReport
from streams.execution.initialization import ExecutionStart, first_event
from streams.payload.port import Scope

STEP, POOL = "fetch_patients", "default"
ROWS, WINDOW, WORKERS, LEASE_S = 50, 16, 4, 60
FAILED_EACH = 97
"""One frame of so many fails once, and is dispatched again."""


def long_loop(
    scope: Scope, next_id: Callable[[], int], *, execution_id: int, length: int
) -> Iterator[NewEvent]:
    """Yield the first `length` events of an execution whose loop does not end."""
    return islice(_Loop(scope, next_id, execution_id).events(), length)


class _Loop:
    def __init__(self, scope: Scope, next_id: Callable[[], int], execution_id: int) -> None:
        self._next_id = next_id
        start = ExecutionStart(
            execution_id=execution_id,
            scope=scope,
            catalog_id=next_id(),
            path="bench/replay",
            version=1,
            workload={"facilities": 100, "page_size": ROWS},
        )
        self._first = first_event(start, key=f"{execution_id}/start", now=datetime.now(UTC))
        self._stage_id, self._loop_id = next_id(), next_id()
        self._scope, self._count = scope, 0

    def events(self) -> Iterator[NewEvent]:
        """Yield events without end: up to 16 frames are in flight."""
        yield self._first
        yield self._new(WorkflowInitialized(steps=2))
        yield self._new(StepEnter(node_name=STEP, node_type="loop", activation=1))
        yield self._new(
            LoopStarted(
                node_name=STEP,
                node_type="loop",
                status="running",
                loop_id=self._loop_id,
                mode="parallel",
            )
        )
        yield self._new(self._opened())
        begun = [self._frame(ordinal) for ordinal in range(WINDOW)]
        for frame in begun:
            yield self._new(next(frame))
        ordinal = WINDOW
        while True:
            slot = ordinal % WINDOW
            for event in begun[slot]:
                yield self._new(event)
            begun[slot] = self._frame(ordinal)
            yield self._new(next(begun[slot]))
            ordinal += 1

    def _opened(self) -> StageOpened:
        return StageOpened(
            node_name=STEP,
            stage_id=self._stage_id,
            kind="loop",
            loop_id=self._loop_id,
            dsl_ref=f"bench/replay#{STEP}",
            pool=POOL,
            activation=1,
            policy={"size": ROWS, "window": WINDOW, "row_concurrency": 8},
            source={"kind": "range"},
        )

    def _frame(self, ordinal: int) -> Iterator[AnyEvent]:
        """Yield the events of a frame: dispatched, claimed, committed; some fail before."""
        frame_id = self._next_id()
        cursor: dict[str, Json] = {
            "kind": "range",
            "from": ordinal * ROWS,
            "to": (ordinal + 1) * ROWS,
        }
        for attempt in (1, 2):
            yield FrameDispatched(
                node_name=STEP,
                frame_id=frame_id,
                stage_id=self._stage_id,
                loop_id=self._loop_id,
                attempt=attempt,
                ordinal=ordinal,
                pool=POOL,
                cursor=dict(cursor),
            )
            own = FrameAttempt(
                frame_id=frame_id,
                stage_id=self._stage_id,
                loop_id=self._loop_id,
                attempt=attempt,
                step=STEP,
                worker=f"worker-{ordinal % WORKERS}",
            )
            yield own.claimed(LEASE_S)
            if attempt == 1 and ordinal % FAILED_EACH == FAILED_EACH - 1:
                yield own.failed("http.status: 503 of facility", FrameReport(rows=0))
                continue
            report = FrameReport(
                rows=ROWS,
                retries=ordinal % 3,
                saved={"rows": ROWS, "requests": ROWS + ordinal % 3},
                payload_ref=self._output(ordinal),
            )
            yield own.committed(report, continues=False)
            return

    def _output(self, ordinal: int) -> PayloadRef:
        digest = hashlib.sha256(f"{self._stage_id}/{ordinal}".encode()).hexdigest()
        scope = self._scope
        return PayloadRef(
            uri=str(Locator.payload(scope.tenant_id, scope.organization_id, digest)),
            sha256=digest,
            media_type="application/vnd.apache.arrow.stream",
            byte_length=40_000 + ordinal % 5_000,
            row_count=ROWS,
            schema_digest="c3" * 32,
            compression="zstd",
        )

    def _new(self, event: AnyEvent) -> NewEvent:
        self._count += 1
        first = self._first
        return NewEvent(
            root=first.root,
            tenant_id=first.tenant_id,
            organization_id=first.organization_id,
            idempotency_key=f"{first.root.id}/bench/{self._count}",
            event_time=datetime.now(UTC),
            catalog_id=first.catalog_id,
            causation_id=self._stage_id,
            **event.columns(),
        )
