"""Executions to look at: the events of a small playbook, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

from streams.clock import SystemClock
from streams.events.model import Event, NewEvent, Root
from streams.log.memory import MemoryEventStore
from streams.log.port import EventStore
from tests.support.events.examples import PRODUCER, codec

AT = datetime(2026, 5, 16, 12, 0, tzinfo=UTC)


class Story:
    """Makes the events of one execution: step `load` loops over ten rows in frames of five."""

    def __init__(self, execution_id: int, *, tenant: str = "acme", catalog_id: int = 9) -> None:
        self.root = Root("execution", execution_id)
        self._tenant, self._catalog_id = tenant, catalog_id
        self._keys = count(1)
        self.stage_id, self.loop_id = execution_id + 1, execution_id + 2
        self.command_id = execution_id + 3

    def event(self, type: str, **fields: Any) -> NewEvent:
        """Return the next event; each call has a key of its own."""
        return NewEvent(
            type=type,
            root=self.root,
            tenant_id=self._tenant,
            organization_id="care",
            idempotency_key=f"story/{next(self._keys)}",
            event_time=AT,
            **fields,
        )

    def frame_id(self, ordinal: int) -> int:
        """Return the id of the frame with this number, from 0 on."""
        return self.root.id + 10 + ordinal

    def began(self, path: str = "examples/load") -> NewEvent:
        """The first event."""
        meta = {"path": path, "version": 1}
        workload = {"workload": {"size": 10}}
        catalog_id = self._catalog_id
        return self.event(
            "playbook.initialized", meta=meta, context=workload, catalog_id=catalog_id
        )

    def entered(self, step: str = "load") -> NewEvent:
        """A step was reached."""
        return self.event("step.enter", node_name=step, node_type="loop", meta={"activation": 1})

    def loop_started(self, mode: str = "parallel") -> NewEvent:
        """The loop knows its rows."""
        meta = {"loop_id": str(self.loop_id), "mode": mode, "collection_size": 10}
        return self.event(
            "loop.started", node_name="load", node_type="loop", status="started", meta=meta
        )

    def opened(self) -> NewEvent:
        """The stage of the loop."""
        meta = {
            "stage_id": str(self.stage_id),
            "loop_id": str(self.loop_id),
            "kind": "loop",
            "dsl_ref": "examples/load@1#load",
            "pool": "default",
            "total_rows": 10,
        }
        document = {"input": {"workload": {}}, "items": list(range(10))}
        context = {"policy": {"size": 5}, "source": {"kind": "list"}, "document": document}
        return self.event(
            "stage.opened", node_name="load", meta=meta, context=context, causation_id=77
        )

    def dispatched(self, ordinal: int, attempt: int = 1) -> NewEvent:
        """A frame waits for a worker."""
        meta = {"loop_id": str(self.loop_id), "ordinal": ordinal, "pool": "default"}
        cursor = {"kind": "list", "from": 5 * ordinal, "to": 5 * ordinal + 5}
        return self._frame(
            "frame.dispatched", ordinal, attempt, meta=meta, context={"cursor": cursor}
        )

    def claimed(self, ordinal: int, attempt: int = 1, worker: str = "w-1") -> NewEvent:
        """A worker won the frame."""
        meta = {"worker": worker, "lease_seconds": 60}
        return self._frame("frame.claimed", ordinal, attempt, meta=meta)

    def expired(self, ordinal: int, attempt: int = 1) -> NewEvent:
        """The owner fell silent."""
        meta = {"worker": "w-1", "reason": "expired"}
        return self._frame("frame.lease_expired", ordinal, attempt, meta=meta)

    def committed(self, ordinal: int, attempt: int = 1, failed: int = 0) -> NewEvent:
        """The frame's rows are saved."""
        meta = {"loop_id": str(self.loop_id), "worker": "w-1", "rows": 5}
        meta |= {"failed_rows": failed, "continues": False}
        status = "partial" if failed else "success"
        return self._frame("frame.committed", ordinal, attempt, meta=meta, status=status)

    def closed(self) -> NewEvent:
        """Every frame has ended."""
        meta = {"stage_id": str(self.stage_id), "loop_id": str(self.loop_id)}
        meta |= {"frames": 2, "rows": 10, "failed_rows": 0}
        return self.event("stage.closed", node_name="load", status="completed", meta=meta)

    def loop_done(self) -> NewEvent:
        """The loop has ended."""
        meta = {"loop_id": str(self.loop_id)}
        return self.event("loop.done", node_name="load", status="completed", meta=meta)

    def issued(self, step: str = "tell", pool: str = "default") -> NewEvent:
        """A tool step waits for a worker."""
        meta = {"pool": pool, "tool": "noop", "activation": 1}
        document = {"input": {"workload": {}, "ctx": {}, "args": {}, "steps": {}}}
        context = {"document": document}
        return self._command("command.issued", step=step, meta=meta, context=context)

    def command_claimed(self) -> NewEvent:
        """A worker won the command."""
        return self._command("command.claimed", meta={"worker": "w-1", "lease_seconds": 60})

    def completed_command(self) -> NewEvent:
        """The tool ended well."""
        result = {"status": "success", "data": {"n": 1}, "meta": {}}
        return self._command(
            "command.completed", meta={"worker": "w-1"}, status="success", result=result
        )

    def ended(self, type: str = "playbook.completed", **fields: Any) -> NewEvent:
        """The execution ended."""
        return self.event(type, status=fields.pop("status", "COMPLETED"), **fields)

    def whole(self) -> list[NewEvent]:
        """A loop of two frames, then a tool step, then the end."""
        return [
            *(self.began(), self.entered(), self.loop_started(), self.opened()),
            *(self.dispatched(0), self.dispatched(1), self.claimed(0), self.claimed(1)),
            *(self.committed(0), self.expired(1), self.dispatched(1, 2), self.claimed(1, 2)),
            *(self.committed(1, 2), self.closed(), self.loop_done()),
            *(self.issued(), self.command_claimed(), self.completed_command()),
            self.ended(result={"n": 1}),
        ]

    def _frame(
        self, type: str, ordinal: int, attempt: int, *, meta: dict[str, Any], **fields: Any
    ) -> NewEvent:
        known = {"frame_id": str(self.frame_id(ordinal)), "stage_id": str(self.stage_id)}
        return self.event(
            type, node_name="load", meta={**known, "attempt": attempt, **meta}, **fields
        )

    def _command(
        self, type: str, *, meta: dict[str, Any], step: str = "tell", **fields: Any
    ) -> NewEvent:
        known = {"command_id": str(self.command_id), "attempt": 1}
        return self.event(type, node_name=step, meta={**known, **meta}, **fields)


def memory_log(mirror: Callable[[Event, bytes], None] | None = None) -> MemoryEventStore:
    """Return an empty log in memory."""
    ids = count(5000)
    return MemoryEventStore(
        codec=codec(),
        next_id=lambda: next(ids),
        producer=PRODUCER,
        clock=SystemClock(),
        mirror=mirror,
    )


async def stored_events(log: EventStore, root: Root) -> list[Event]:
    """Return a root's events as the log has them."""
    return [event async for event in log.read_root(root)]
