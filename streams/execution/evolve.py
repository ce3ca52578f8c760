"""The fold: an execution's state after one more event. Pure, and the only one there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from streams.errors import Inconsistent
from streams.events.event_fields import Fact, body, number, text
from streams.events.model import Event
from streams.execution.command import absorb_command
from streams.execution.fast_replace import copied, settle
from streams.execution.plan import CANCELLED, COMPLETED, FAILED, PARTIAL, RUNNING, Activation, Plan
from streams.execution.stage import Stage, absorb_in_stage, close_stage, open_stage
from streams.results.envelope import Envelope
from streams.results.reference import Reference
from streams.results.spill import merged

_CTX = ("ctx", "ctx_elsewhere")


class Gap(Inconsistent):
    """Events are missing before this one; read them from the log first."""

    def __init__(self, event: Event, after: int) -> None:
        super().__init__(f"{event.root}: has events up to {after}, was given {event.seq}")
        self.event, self.after = event, after


def evolve(plan: Plan | None, event: Event) -> Plan:
    """Return the plan after `event`. An event already absorbed changes nothing.

    Raises:
        Gap: events before this one were not absorbed.
    """
    if plan is None:
        if event.seq != 1:
            raise Gap(event, 0)
        return _advanced(begin(event, event.ingest_time), (1,))
    if event.seq <= plan.seq or event.seq in plan.ahead:
        return plan
    if event.seq != plan.seq + 1:
        raise Gap(event, plan.seq)
    after = apply(plan, event, event.ingest_time)
    if not plan.ahead:
        return settle(after, seq=event.seq)
    return _advanced(after, (event.seq,))


def absorb_own(plan: Plan, seqs: Iterable[int]) -> Plan:
    """Note that events at these places are in the plan already: we appended them ourselves."""
    return _advanced(plan, seqs)


def begin(fact: Fact, at: datetime) -> Plan:
    """Return the plan that `playbook.initialized` starts."""
    if fact.type != "playbook.initialized":
        raise Inconsistent(f"{fact.root}: begins with {fact.type}, not with playbook.initialized")
    parent = fact.meta.get("parent_command_id")
    return Plan(
        execution_id=fact.root.id,
        tenant_id=fact.tenant_id,
        organization_id=fact.organization_id,
        catalog_id=fact.catalog_id or 0,
        catalog_version=number(fact, "version"),
        path=text(fact, "path") or "",
        started_at=at,
        parent_execution_id=fact.parent_execution_id,
        parent_command_id=None if parent is None else int(parent),
        parent_step=text(fact, "parent_step"),
        reply_to=text(fact, "reply_to"),
        workload=None if fact.payload_ref else body(fact.context).get("workload", {}),
        workload_ref=fact.payload_ref,
        last_event_type=fact.type,
    )


def apply(plan: Plan, fact: Fact, at: datetime) -> Plan:
    """Return the plan after `fact`, which follows on what it has absorbed."""
    handler = _HANDLERS.get(fact.type)
    after = plan if handler is None else handler(plan, fact, at)
    if after is plan:
        after = copied(plan)
    return settle(
        after, last_event_type=fact.type, last_node_name=fact.node_name or plan.last_node_name
    )


def _advanced(plan: Plan, seqs: Iterable[int]) -> Plan:
    seq, ahead = plan.seq, set(plan.ahead)
    ahead.update(place for place in seqs if place > seq)
    while seq + 1 in ahead:
        seq += 1
        ahead.discard(seq)
    return copied(plan, seq=seq, ahead=frozenset(ahead))


def _initialized(plan: Plan, fact: Fact, at: datetime) -> Plan:
    return copied(plan, is_initialized=True)


def _entered(plan: Plan, fact: Fact, at: datetime) -> Plan:
    step, visit = fact.node_name or "", number(fact, "activation", 1)
    given = body(fact.context)
    made = Activation(
        step=step,
        number=visit,
        args=given.get("args", {}),
        args_elsewhere=given.get("args_elsewhere", []),
    )
    return copied(
        plan,
        visits={**plan.visits, step: max(visit, plan.visits.get(step, 0))},
        activations={**plan.activations, key_of(step, visit): made},
    )


def _left(plan: Plan, fact: Fact, at: datetime) -> Plan:
    step, visit = fact.node_name or "", number(fact, "activation", 1)
    left = plan.activations.get(key_of(step, visit))
    changes = body(fact.result)
    plan = copied(
        plan,
        activations={k: v for k, v in plan.activations.items() if k != key_of(step, visit)},
        last_step=step if fact.status != "skipped" else plan.last_step,
    )
    plan = _changed(plan, Envelope(changes))
    if left is not None:
        plan = _forget(plan, left)
    if fact.status == "error":
        plan = _failed_step(plan, fact, changes)
    elif fact.status == "skipped":
        plan = copied(plan, results={**plan.results, step: Envelope.of("skipped")})
    return plan


def _changed(plan: Plan, result: Envelope) -> Plan:
    """Return the plan with the changes of `ctx` in an event's result."""
    changes, spilled = result.ctx, result.spilled_ctx
    if not changes and not spilled:
        return plan
    ctx, groups = merged(plan.ctx, plan.ctx_elsewhere, changes, spilled)
    return copied(plan, ctx=ctx, ctx_elsewhere=groups)


def _failed_step(plan: Plan, fact: Fact, changes: dict[str, Any]) -> Plan:
    step = fact.node_name or ""
    known = plan.results.get(step)
    if known is None or known.status != "error":
        failed = Envelope.of("error").with_fields(error={"message": fact.error})
        plan = copied(plan, results={**plan.results, step: failed})
    match changes.get("then"):
        case "continue":
            why = fact.error or f"step {step} failed"
            return copied(plan, setbacks={**plan.setbacks, step: why})
        case "handled":
            return plan
    failure = {
        "step": step,
        "error": fact.error,
        "rows": changes.get("failed_rows", 0),
        "errors": changes.get("errors", []),
    }
    return copied(plan, failure=plan.failure or failure)


def _forget(plan: Plan, left: Activation) -> Plan:
    """Drop what a finished step had open."""
    gone = {left.command_id, left.planning_id}
    return copied(
        plan,
        commands={k: v for k, v in plan.commands.items() if k not in gone},
        stages={k: v for k, v in plan.stages.items() if k != left.stage_id},
    )


def _command(plan: Plan, fact: Fact, at: datetime) -> Plan:
    command_id = number(fact, "command_id")
    known = plan.commands.get(command_id)
    if known is None and fact.type != "command.issued":
        return plan  # it was forgotten with its step
    command = absorb_command(known, fact, at)
    plan = copied(plan, commands={**plan.commands, command_id: command})
    if known is None:
        plan = _attach_command(plan, command.step, command.activation, command_id, command.tool)
    if command.tool != "cursor.plan" and fact.type in ("command.completed", "command.failed"):
        given = command.result or Envelope({})
        fields = given.without(*_CTX).fields
        fields.setdefault("status", "success" if fact.type == "command.completed" else "error")
        fields.setdefault("meta", {})
        envelope = Envelope(fields).with_payload(command.output)
        plan = copied(plan, results={**plan.results, command.step: envelope})
        plan = _changed(plan, given)
    return plan


def _attach_command(plan: Plan, step: str, visit: int, command_id: int, tool: str) -> Plan:
    activation = plan.activations.get(key_of(step, visit))
    if activation is None:
        return plan
    if tool == "cursor.plan":
        changed = copied(activation, planning_id=command_id)
    else:
        changed = copied(activation, command_id=command_id)
    return copied(plan, activations={**plan.activations, key_of(step, visit): changed})


def _stage_opened(plan: Plan, fact: Fact, at: datetime) -> Plan:
    stage = open_stage(fact, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: stage})
    activation = plan.activations.get(key_of(stage.step, stage.activation))
    if activation is not None:
        changed = copied(activation, stage_id=stage.stage_id)
        key = key_of(stage.step, stage.activation)
        plan = copied(plan, activations={**plan.activations, key: changed})
    return plan


def _stage_closed(plan: Plan, fact: Fact, at: datetime) -> Plan:
    stage = plan.stages.get(number(fact, "stage_id"))
    if stage is None:
        return plan
    closed = close_stage(stage, fact, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: closed})
    counts = {
        "total": stage.rows_done + stage.rows_failed,
        "completed": stage.rows_done,
        "failed": stage.rows_failed,
        "frames": stage.frames_done,
    }
    envelope = Envelope(
        {
            "status": "error" if fact.status == "failed" else "success",
            "meta": {"stage_id": str(stage.stage_id), "loop_id": str(stage.loop_id)},
        }
    )
    if (ref := fact.payload_ref) is None:
        envelope = envelope.with_fields(data=counts)
    else:
        rows = Reference.to_rows(plan.execution_id, stage.step, stage.loop_id, ref)
        envelope = envelope.with_fields(counts=counts, ref=rows.to_json()).with_payload(ref)
    if fact.status == "failed":
        envelope = envelope.with_fields(error={"message": fact.error, "rows": list(stage.errors)})
    return copied(plan, results={**plan.results, stage.step: envelope})


def _frame(plan: Plan, fact: Fact, at: datetime) -> Plan:
    stage = plan.stages.get(number(fact, "stage_id"))
    if stage is None:
        return plan
    frame_id = number(fact, "frame_id")
    if frame_id not in stage.frames and fact.type != "frame.dispatched":
        return plan
    changed = absorb_in_stage(stage, fact, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: changed})
    if fact.type == "frame.committed":
        plan = _changed(plan, Envelope.parse(fact.result))
    if changed.frames_done != stage.frames_done:
        plan = _count(plan, changed.step, changed.rows_done, changed.rows_failed)
        if changed.kind == "fanout":
            plan = _count_shards(plan, changed)
    return plan


def _count(plan: Plan, step: str, done: int, failed: int) -> Plan:
    loop = {**plan.loops.get(step, {}), "done": done, "failed": failed}
    return copied(plan, loops={**plan.loops, step: loop})


def _count_shards(plan: Plan, stage: Stage) -> Plan:
    known = plan.fanouts.get(stage.step, {})
    fanout = {**known, "done": stage.shards_done, "failed": stage.shards_failed}
    return copied(plan, fanouts={**plan.fanouts, stage.step: fanout})


def _loop_started(plan: Plan, fact: Fact, at: datetime) -> Plan:
    size = fact.meta.get("collection_size")
    loop = {
        "loop_id": str(fact.meta["loop_id"]),
        "total": None if size is None else int(size),
        "done": 0,
        "failed": 0,
        "collection_ref": body(fact.context).get("collection_ref"),
        "mode": fact.meta.get("mode"),
        "completed": False,
    }
    return copied(plan, loops={**plan.loops, fact.node_name or "": loop})


def _loop_done(plan: Plan, fact: Fact, at: datetime) -> Plan:
    step = fact.node_name or ""
    return copied(plan, loops={**plan.loops, step: {**plan.loops.get(step, {}), "completed": True}})


def _fanout_started(plan: Plan, fact: Fact, at: datetime) -> Plan:
    fanout = {
        "loop_id": str(fact.meta["loop_id"]),
        "total_shards": number(fact, "total_shards"),
        "done": 0,
        "failed": 0,
        "status": "running",
    }
    return copied(plan, fanouts={**plan.fanouts, fact.node_name or "": fanout})


def _fanin(plan: Plan, fact: Fact, at: datetime) -> Plan:
    step = fact.node_name or ""
    known = {**plan.fanouts.get(step, {}), "status": fact.status or "completed"}
    return copied(plan, fanouts={**plan.fanouts, step: known})


def _ended(status: str) -> Callable[[Plan, Fact, datetime], Plan]:
    def end(plan: Plan, fact: Fact, at: datetime) -> Plan:
        if plan.has_ended:
            return plan  # a terminal status is sticky
        final = PARTIAL if status == COMPLETED and fact.status == PARTIAL else status
        return copied(
            plan,
            status=final,
            ended_at=at,
            result=fact.result,
            output=fact.payload_ref,
            error=fact.error,
            activations={},
            commands={},
            stages={},
        )

    return end


def _suspended(plan: Plan, fact: Fact, at: datetime) -> Plan:
    return copied(plan, is_suspended=True, suspension=text(fact, "reason"))


def _resumed(plan: Plan, fact: Fact, at: datetime) -> Plan:
    return copied(plan, is_suspended=False, suspension=None)


def _replied(plan: Plan, fact: Fact, at: datetime) -> Plan:
    return copied(plan, is_replied=True)


def _redriven(plan: Plan, fact: Fact, at: datetime) -> Plan:
    return copied(plan, status=RUNNING, ended_at=None, error=None, failure=None)


def key_of(step: str, visit: int) -> str:
    """Name one activation of a step."""
    return f"{step}#{visit}"


_HANDLERS: dict[str, Callable[[Plan, Fact, datetime], Plan]] = {
    "workflow.initialized": _initialized,
    "step.enter": _entered,
    "step.exit": _left,
    **dict.fromkeys(
        (
            "command.issued",
            "command.claimed",
            "command.heartbeat",
            "command.completed",
            "command.failed",
            "command.lease_expired",
            "command.released",
            "command.cancelled",
            "command.started",
        ),
        _command,
    ),
    "stage.opened": _stage_opened,
    "stage.closed": _stage_closed,
    **dict.fromkeys(
        (
            "frame.dispatched",
            "frame.claimed",
            "frame.heartbeat",
            "frame.committed",
            "frame.failed",
            "frame.lease_expired",
            "frame.released",
            "frame.abandoned",
        ),
        _frame,
    ),
    "loop.started": _loop_started,
    "loop.done": _loop_done,
    "loop.fanout.started": _fanout_started,
    "loop.fanin.completed": _fanin,
    "playbook.completed": _ended(COMPLETED),
    "playbook.failed": _ended(FAILED),
    "execution.cancelled": _ended(CANCELLED),
    "execution.suspended": _suspended,
    "execution.resumed": _resumed,
    "redrive.requested": _redriven,
    "reply.sent": _replied,
}
