"""Hand-built executions of the golden corpus: what recorded ones do not have.

Types that no code writes yet, values that are hard to write the same way twice, and more frames
than a small playbook has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from streams.clock import SettableClock
from streams.events.locator import Locator
from streams.events.model import Event, Json, NewEvent, PayloadRef, Root
from streams.log.memory import MemoryEventStore
from streams.payload.port import JSON
from tests.golden.sealing import Unsealed
from tests.support.events.examples import AT, PRODUCER, codec, full_payload, payload

AWKWARD: dict[str, Json] = {
    "floats": [0.1, -0.0, 1e16, 1.5e-7, 1e-5, 5e-324, 1.7976931348623157e308, 123456789.125],
    "integers": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1],
    "text": 'Zoë \u2028 \x1f " \\ / \t 😀',
    "é": {"z": None, "B": True, "a": [[], {}, ""]},
}
FRAMES = 60


class Builder:
    """Appends the events of one execution to a log in memory, which applies the log's rules."""

    def __init__(self, execution_id: int) -> None:
        self.root = Root("execution", execution_id)
        self._keys, self._event_ids = count(1), count(execution_id + 100_000)
        self._clock = SettableClock(AT)
        self.stored: list[tuple[Event, bytes]] = []
        self._store = MemoryEventStore(
            codec=codec(),
            next_id=lambda: next(self._event_ids),
            producer=PRODUCER,
            clock=self._clock,
            mirror=lambda event, envelope: self.stored.append((event, envelope)),
        )

    async def add(self, type: str, meta: Mapping[str, Any] | None = None, **fields: Any) -> int:
        """Append an event, a few milliseconds after the one before; return its id."""
        number = next(self._keys)
        self._clock.advance(0.001 * (number % 4))
        event = NewEvent(
            type=type,
            root=self.root,
            tenant_id="acme",
            organization_id="care",
            idempotency_key=f"built/{number}",
            event_time=self._clock.now(),
            meta=meta or {},
            **fields,
        )
        await self._store.append([event])
        return self.stored[-1][0].event_id

    async def begin(self, path: str, **fields: Any) -> None:
        """Append the first events of an execution."""
        meta = {"path": path, "version": 3}
        await self.add("playbook.initialized", meta, catalog_id=7, **fields)
        await self.add("workflow.initialized", {"steps": 2})

    async def enter(self, step: str, node_type: str = "tool", activation: int = 1) -> int:
        """Append that a step was activated."""
        meta = {"activation": activation}
        return await self.add("step.enter", meta, node_name=step, node_type=node_type)

    async def command(self, step: str, command_id: int, *changes: str, **fields: Any) -> None:
        """Append that a command was issued, and the attempts that are named."""
        of: dict[str, Any] = {"command_id": str(command_id), "attempt": 1}
        issued = {**of, "pool": "default", "tool": "http", "activation": 1}
        await self.add("command.issued", issued, node_name=step)
        for change in changes:
            await self.command_event(step, of, change, **fields)

    async def command_event(self, step: str, of: dict[str, Any], change: str, **more: Any) -> None:
        """Append one event of a command's attempt."""
        meta = dict(of) if change == "cancelled" else {**of, "worker": "w1"}
        if change in ("claimed", "heartbeat"):
            meta["lease_seconds"] = 45
        fields = {"node_name": step, **(more if change in ("completed", "failed") else {})}
        await self.add(f"command.{change}", meta, **fields)


async def _planned(build: Builder) -> None:
    """Every type of an execution that no code writes yet."""
    await build.begin("built/planned", context={"workload": AWKWARD})
    await build.enter("load")
    await build.command("load", 11, "claimed", "started", "heartbeat", "cancelled")
    await build.command("load", 12, "claimed", "started")
    of_call = {"command_id": "12", "task": "a", "attempt": 1}
    on = {"node_name": "load"}
    await build.add("call.done", {"call_id": "1", **of_call}, **on, status="ok", result=AWKWARD)
    await build.add("call.error", {"call_id": "2", **of_call}, **on, status="error", error="no")
    submitted = {"submission_id": "5", "provider": "batch", "command_id": "12"}
    await build.add("provider.submitted", submitted, **on, context={"size": 3})
    observed = {"submission_id": "5", "provider": "batch"}
    await build.add("provider.observed", observed, **on, status="done", result={"ok": True})
    shard = {"loop_id": "21", "shard_id": "s1"}
    await build.add("loop.shard.enqueued", {**shard, "iter_index": 0}, node_name="fan")
    await build.add("loop.shard.done", {**shard, "command_id": "12"}, node_name="fan")
    failed = {"loop_id": "21", "shard_id": "s2", "command_id": "12"}
    await build.add("loop.shard.failed", failed, node_name="fan", error="a shard failed")
    await _dead_lettered(build)
    await build.add("execution.cancelled", {"by": "ana"}, status="CANCELLED", error="enough")
    checkpoint: dict[str, Any] = {"barrier": 1, "through_seq": 9, "checksum": "cd" * 32}
    await build.add("execution.checkpointed", checkpoint, payload_ref=_state())
    await build.add("result.expired", {"result_id": "31", "reason": "scope"})
    await build.add("reply.sent", {"reply_to": "answers"})


async def _dead_lettered(build: Builder) -> None:
    stored = {"result_id": "31", "store": "object", "scope": "execution", "task": "Größe/1"}
    meta = {"sha256": "12" * 32, "bytes": 3, "compression": "zstd"}
    result = {"kind": "result_ref", "meta": meta, "preview": AWKWARD, "extracted": {"a": 1.0}}
    fields = {"result": result, "payload_ref": full_payload()}
    await build.add("result.stored", stored, node_name="load it", **fields)
    dead = {"topic": "t", "partition": 0, "offset": 9, "dead_letter_id": "41"}
    await build.add("execution.dead_lettered", dead, error="it cannot be decoded")
    suspended = {"by": "planner", "reason": "it crashed three times"}
    await build.add("execution.suspended", suspended)


async def _redriven(build: Builder) -> None:
    """An execution that fails with work in flight, and is run again."""
    await build.begin("built/redriven")
    await build.enter("load")
    await build.command("load", 11, "claimed", "failed", status="error", error="no route")
    exited = {"activation": 1}
    await build.add("step.exit", exited, node_name="load", status="error", error="no route")
    await build.enter("other")
    await build.command("other", 12, "claimed", "lease_expired")
    ended = {"status": "error", "errors": []}
    await build.add("workflow.failed", {"failed_step": "load"}, status="FAILED", error="no route")
    failed = {"failed_step": "load", "failed_rows": 0}
    fields = {"status": "FAILED", "error": "no route", "result": ended}
    await build.add("playbook.failed", failed, **fields)
    redrive = {"redrive_id": "51", "by": "ana", "scope": "step"}
    await build.add("redrive.requested", redrive, context={"steps": ["load"]})
    await build.enter("load", activation=2)
    output = {"status": "success", "result": {"status": "success", "data": AWKWARD}}
    await build.command("load", 13, "claimed", "completed", **output, payload_ref=full_payload())
    redriven = {"redrive_id": "51", "rows": 1, "failed_rows": 0}
    await build.add("redrive.completed", redriven, status="success")
    await build.add("workflow.completed", status="COMPLETED")
    done = {"status": "success", "data": {**AWKWARD, "nested": AWKWARD}}
    await build.add("playbook.completed", {"partial": False}, status="COMPLETED", result=done)


async def _windows(build: Builder) -> None:
    """A loop of many frames whose cursors are awkward; some fail, some close early."""
    await build.begin("built/windows")
    cause = await build.enter("each", "loop")
    started = {"loop_id": "21", "mode": "cursor", "collection_size": 10 * FRAMES}
    of = {"node_name": "each"}
    await build.add("loop.started", started, **of, node_type="loop", status="running")
    opened = {"stage_id": "22", "kind": "loop", "loop_id": "21", "dsl_ref": "a/b", "pool": "p"}
    policy = {"size": 10, "ratio": 1e-7, "é": AWKWARD}
    context = {"activation": 1, "policy": policy, "source": {"kind": "postgres"}}
    await build.add("stage.opened", opened, **of, causation_id=cause, context=context)
    for ordinal in range(FRAMES):
        await _frame(build, ordinal)
    closed = {"stage_id": "22", "loop_id": "21", "frames": FRAMES, "rows": 9, "failed_rows": 1}
    fields: dict[str, Any] = {"status": "failed", "result": {"errors": [], "retries": 0}}
    await build.add("stage.closed", closed, **of, **fields, error="rows failed")
    await build.add("loop.done", {"loop_id": "21"}, **of, status="completed")
    await build.enter("last")
    await build.command("last", 11, "claimed", "released", "claimed")


async def _frame(build: Builder, ordinal: int) -> None:
    """Append the events of a frame: what happens to it depends on its number."""
    frame = {"frame_id": str(1000 + ordinal), "stage_id": "22", "attempt": 1}
    of, loop = {"node_name": "each"}, {**frame, "loop_id": "21"}
    cursor: dict[str, Json] = {"kind": "range", "from": ordinal * 0.1, "to": [1e22, None, True]}
    if ordinal % 7 == 3:
        cursor["continues"] = str(1000 + ordinal - 1)
    dispatched = {**loop, "ordinal": ordinal, "pool": "p"}
    await build.add("frame.dispatched", dispatched, **of, context={"cursor": cursor})
    owned = {**frame, "worker": f"w{ordinal % 3}"}
    await build.add("frame.claimed", {**owned, "lease_seconds": 60}, **of)
    at = {"cursor": {"kind": "range", "from": ordinal * 0.1 + 0.05, "to": "it's"}}
    if ordinal % 5 == 4:
        beat = {**owned, "lease_seconds": 60, "rows": 4, "failed_rows": 1, "loop_id": "21"}
        await build.add("frame.heartbeat", beat, **of, context=at, payload_ref=_rows(4))
    if ordinal % 11 == 5:
        await build.add("frame.lease_expired", {**owned, "reason": "restarted"}, **of)
        await build.add("frame.abandoned", {**loop}, **of, status="failed", error="gave up")
        return
    row_count = (95, 96, 98)[ordinal % 3]
    rows = {"rows": row_count, "failed_rows": ordinal % 2, "continues": ordinal % 7 == 2}
    committed = {**loop, "worker": owned["worker"], **rows}
    fields = {"status": "success", "context": at, "payload_ref": _rows(row_count)}
    await build.add("frame.committed", committed, **of, **fields)


def _rows(row_count: int) -> PayloadRef:
    return _payload(f"{row_count:02d}" * 32, row_count=row_count)


def _state() -> PayloadRef:
    return _payload("ee" * 32, media_type=JSON)


def _payload(sha256: str, **fields: Any) -> PayloadRef:
    return payload(sha256=sha256, uri=str(Locator.payload("acme", "care", sha256)), **fields)


BUILT: Mapping[str, Callable[[Builder], Any]] = {
    "built_planned": _planned,
    "built_redriven": _redriven,
    "built_windows": _windows,
}


def built(name: str) -> Iterator[Unsealed]:
    """Yield the events of a hand-built execution."""
    build = Builder(600_000 * (1 + list(BUILT).index(name)))
    asyncio.run(BUILT[name](build))
    return _unsealed(build.stored)


def _unsealed(stored: Sequence[tuple[Event, bytes]]) -> Iterator[Unsealed]:
    for event, envelope in stored:
        record = codec().record(envelope)
        at = event.ingest_time
        yield Unsealed(record, event.seq, event.position, event.stream_version, at)
