"""A small run of a playbook, told in events: what planner and workers will say one day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from streams.envelope.model import Json, NewEvent, Root

STEP, FRAME_ROWS = "fetch_patients", 50


class Story:
    """The events of one execution, in order and each with its own idempotency key."""

    def __init__(self, tenant: str, organization: str, next_id: Callable[[], int]) -> None:
        self._tenant, self._organization, self._next_id = tenant, organization, next_id
        self.root = Root("execution", next_id())

    def batches(self, frames: int) -> Iterator[list[NewEvent]]:
        """Yield the batches that would be appended together."""
        stage, loop = str(self._next_id()), str(self._next_id())
        about = {"stage_id": stage, "loop_id": loop}
        yield [self._event("playbook.initialized", {"path": "demo/patients", "version": 1})]
        yield [
            self._event("workflow.initialized", {"steps": 1}),
            self._event("step.enter", {"activation": 1}, node_type="loop"),
            self._event(
                "loop.started",
                {"loop_id": loop, "mode": "cursor"},
                node_type="loop",
                status="started",
            ),
            self._event(
                "stage.opened",
                {**about, "kind": "loop", "dsl_ref": f"demo/patients#{STEP}", "pool": "default"},
                context={"frame_policy": {"size": FRAME_ROWS}},
            ),
        ]
        for ordinal in range(frames):
            yield from self._frame(about, ordinal)
        rows = {"frames": frames, "rows": frames * FRAME_ROWS, "failed_rows": 0}
        yield [
            self._event("stage.closed", {**about, **rows}, status="ok"),
            self._event("loop.done", {"loop_id": loop}, status="completed"),
            self._event("step.exit", {"activation": 1, "loop_id": loop}, status="ok"),
            self._event("workflow.completed", {}, status="ok"),
            self._event(
                "playbook.completed", {}, status="ok", result={"rows": frames * FRAME_ROWS}
            ),
        ]

    def _frame(self, about: dict[str, str], ordinal: int) -> Iterator[list[NewEvent]]:
        frame = str(self._next_id())
        attempt = {"frame_id": frame, "stage_id": about["stage_id"], "attempt": 1}
        window: Json = {"from": ordinal * FRAME_ROWS, "to": (ordinal + 1) * FRAME_ROWS}
        dispatched = {**attempt, "loop_id": about["loop_id"], "ordinal": ordinal, "pool": "default"}
        yield [self._event("frame.dispatched", dispatched, key=frame, context={"cursor": window})]
        claimed = {**attempt, "worker": "cpu-01", "lease_seconds": 60}
        yield [self._event("frame.claimed", claimed, key=frame, expected_version=1)]
        committed = {
            **attempt,
            "loop_id": about["loop_id"],
            "worker": "cpu-01",
            "rows": FRAME_ROWS,
            "failed_rows": 0,
            "continues": False,
        }
        yield [
            self._event("frame.committed", committed, key=frame, status="ok", expected_version=2)
        ]

    def _event(
        self,
        type: str,
        meta: dict[str, Any],
        *,
        key: str = "",
        context: Json = None,
        result: Json = None,
        **columns: Any,
    ) -> NewEvent:
        return NewEvent(
            type=type,
            root=self.root,
            tenant_id=self._tenant,
            organization_id=self._organization,
            idempotency_key=f"{type}/{key}" if key else type,
            event_time=datetime.now(UTC),
            node_name=None if type.startswith(("playbook", "workflow")) else STEP,
            meta=meta,
            context=context,
            result=result,
            **columns,
        )
