"""The fold: an execution's state after one more event. Pure, and the only one there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar, get_args

from streams.errors import Inconsistent
from streams.events.model import Event, Json
from streams.events.types import (
    AnyEvent,
    CommandCompleted,
    CommandEvent,
    CommandFailed,
    CommandIssued,
    ExecutionCancelled,
    ExecutionResumed,
    ExecutionSuspended,
    FrameCommitted,
    FrameDispatched,
    FrameEvent,
    LoopDone,
    LoopFaninCompleted,
    LoopFanoutStarted,
    LoopStarted,
    PlaybookCompleted,
    PlaybookFailed,
    PlaybookInitialized,
    RedriveRequested,
    ReplySent,
    StageClosed,
    StageOpened,
    StepEnter,
    StepExit,
    WorkflowInitialized,
    typed,
)
from streams.execution.command import Command, CommandStatus, absorb_command
from streams.execution.fast_replace import copied, settle
from streams.execution.plan import CANCELLED, COMPLETED, FAILED, PARTIAL, RUNNING, Activation, Plan
from streams.execution.stage import Stage, absorb_in_stage, close_stage, open_stage
from streams.results.envelope import Envelope
from streams.results.reference import ResultRef
from streams.results.spill import Group, groups_of, merged

_CTX = ("ctx", "ctx_elsewhere")


Handled = TypeVar("Handled", bound=AnyEvent)
Handler: TypeAlias = Callable[[Plan, Handled, datetime], Plan]
_HANDLERS: dict[type[object], Handler[Any]] = {}
"""What each class of events changes; the others change only what was seen last."""


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
    if plan is not None and (event.seq <= plan.seq or event.seq in plan.ahead):
        return plan
    return evolve_typed(plan, event, typed(event))


def evolve_typed(plan: Plan | None, event: Event, known: AnyEvent | None) -> Plan:
    """Return the plan after a new `event`, which its caller has read as `known`.

    Raises:
        Gap: events before this one were not absorbed.
    """
    seq = event.seq
    if plan is None:
        if seq != 1:
            raise Gap(event, 0)
        return _advanced(_begun(event, known), (1,))
    if seq != plan.seq + 1:
        raise Gap(event, plan.seq)
    handler = _HANDLERS.get(type(known))
    after = plan if handler is None else handler(plan, known, event.ingest_time)
    node_name = event.node_name if known is None else known.node_name
    after = _noted(plan, after, event.type, node_name, seq)
    return _advanced(after, ()) if plan.ahead else after


def absorb_own(plan: Plan, seqs: Iterable[int]) -> Plan:
    """Note that events at these places are in the plan already: we appended them ourselves."""
    return _advanced(plan, seqs)


def _begun(event: Event, known: AnyEvent | None) -> Plan:
    """Return the plan that `playbook.initialized` starts."""
    if not isinstance(known, PlaybookInitialized):
        raise Inconsistent(f"{event.root}: begins with {event.type}, not with playbook.initialized")
    return Plan(
        execution_id=event.root.id,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        catalog_id=event.catalog_id or 0,
        catalog_version=known.version,
        path=known.path,
        started_at=event.ingest_time,
        parent_execution_id=event.parent_execution_id,
        parent_command_id=known.parent_command_id,
        parent_step=known.parent_step,
        reply_to=known.reply_to,
        workload=None if known.payload_ref else known.workload or {},
        workload_ref=known.payload_ref,
        last_event_type=event.type,
    )


def apply(plan: Plan, event: AnyEvent, at: datetime) -> Plan:
    """Return the plan after `event`, which follows on what it has absorbed."""
    handler = _HANDLERS.get(type(event))
    after = plan if handler is None else handler(plan, event, at)
    return _noted(plan, after, event.TYPE, event.node_name, plan.seq)


def _noted(plan: Plan, after: Plan, event_type: str, node_name: str | None, seq: int) -> Plan:
    """Return `after`, or a copy of `plan` where nothing changed, with what was seen last."""
    if after is plan:
        after = copied(plan)
    return settle(
        after,
        last_event_type=event_type,
        last_node_name=node_name or plan.last_node_name,
        seq=seq,
    )


def _on(kind: type[Handled]) -> Callable[[Handler[Handled]], Handler[Handled]]:
    """Make a function the handler of a class of events."""

    def register(handler: Handler[Handled]) -> Handler[Handled]:
        _HANDLERS[kind] = handler
        return handler

    return register


def _advanced(plan: Plan, seqs: Iterable[int]) -> Plan:
    seq, ahead = plan.seq, set(plan.ahead)
    ahead.update(place for place in seqs if place > seq)
    while seq + 1 in ahead:
        seq += 1
        ahead.discard(seq)
    return copied(plan, seq=seq, ahead=frozenset(ahead))


@_on(WorkflowInitialized)
def _initialized(plan: Plan, event: WorkflowInitialized, at: datetime) -> Plan:
    return copied(plan, is_initialized=True)


@_on(StepEnter)
def _entered(plan: Plan, event: StepEnter, at: datetime) -> Plan:
    step, visit = event.node_name, event.activation
    made = Activation(
        step=step,
        number=visit,
        args=event.args or {},
        args_elsewhere=groups_of(event.args_elsewhere),
    )
    return copied(
        plan,
        visits={**plan.visits, step: max(visit, plan.visits.get(step, 0))},
        activations={**plan.activations, key_of(step, visit): made},
    )


@_on(StepExit)
def _exited(plan: Plan, event: StepExit, at: datetime) -> Plan:
    step, visit = event.node_name, event.activation
    ended = plan.activations.get(key_of(step, visit))
    plan = copied(
        plan,
        activations={k: v for k, v in plan.activations.items() if k != key_of(step, visit)},
        last_step=step if event.status != "skipped" else plan.last_step,
    )
    plan = _with_ctx(plan, event.ctx, groups_of(event.ctx_elsewhere))
    if ended is not None:
        plan = _without_parts(plan, ended)
    if event.status == "error":
        plan = _failed_step(plan, event)
    elif event.status == "skipped":
        plan = settle(plan, results={**plan.results, step: Envelope.of("skipped")})
    return plan


def _with_ctx(plan: Plan, changes: Mapping[str, Json] | None, spilled: Sequence[Group]) -> Plan:
    """Set an event's changes of `ctx` in a fresh copy of the plan, some of them in payloads."""
    if not changes and not spilled:
        return plan
    ctx, groups = merged(plan.ctx, plan.ctx_elsewhere, changes or {}, spilled)
    return settle(plan, ctx=ctx, ctx_elsewhere=groups)


def _failed_step(plan: Plan, event: StepExit) -> Plan:
    step = event.node_name
    known = plan.results.get(step)
    if known is None or known.status != "error":
        failed = Envelope.of("error").with_fields(error={"message": event.error})
        plan = copied(plan, results={**plan.results, step: failed})
    match event.then:
        case "continue":
            why = event.error or f"step {step} failed"
            return copied(plan, setbacks={**plan.setbacks, step: why})
        case "handled":
            return plan
    failure = {
        "step": step,
        "error": event.error,
        "rows": event.failed_rows or 0,
        "errors": event.errors or [],
    }
    return copied(plan, failure=plan.failure or failure)


def _without_parts(plan: Plan, ended: Activation) -> Plan:
    """Drop what a finished step had open from a fresh copy of the plan."""
    gone = {ended.command_id, ended.planning_id}
    return settle(
        plan,
        commands={k: v for k, v in plan.commands.items() if k not in gone},
        stages={k: v for k, v in plan.stages.items() if k != ended.stage_id},
    )


def _command(plan: Plan, event: CommandEvent, at: datetime) -> Plan:
    command_id = event.command_id
    known = plan.commands.get(command_id)
    if known is None and not isinstance(event, CommandIssued):
        return plan  # it was dropped with its step
    command = absorb_command(known, event, at)
    plan = copied(plan, commands={**plan.commands, command_id: command})
    if known is None:
        plan = _attach_command(plan, command.step, command.activation, command_id, command.tool)
    if command.tool != "cursor.plan" and isinstance(event, CommandCompleted | CommandFailed):
        plan = _with_result(plan, command)
    return plan


def _with_result(plan: Plan, command: Command) -> Plan:
    """Set the result of an ended command, and its changes of `ctx`, in a fresh copy."""
    given = command.result or Envelope({})
    fields = given.without(*_CTX).to_json()
    is_well = command.status is CommandStatus.COMPLETED
    fields.setdefault("status", "success" if is_well else "error")
    fields.setdefault("meta", {})
    envelope = Envelope(fields).with_payload(command.output)
    plan = settle(plan, results={**plan.results, command.step: envelope})
    return _with_ctx(plan, given.ctx, given.spilled_ctx)


def _attach_command(plan: Plan, step: str, visit: int, command_id: int, tool: str) -> Plan:
    activation = plan.activations.get(key_of(step, visit))
    if activation is None:
        return plan
    if tool == "cursor.plan":
        changed = copied(activation, planning_id=command_id)
    else:
        changed = copied(activation, command_id=command_id)
    return settle(plan, activations={**plan.activations, key_of(step, visit): changed})


@_on(StageOpened)
def _stage_opened(plan: Plan, event: StageOpened, at: datetime) -> Plan:
    stage = open_stage(event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: stage})
    activation = plan.activations.get(key_of(stage.step, stage.activation))
    if activation is not None:
        changed = copied(activation, stage_id=stage.stage_id)
        key = key_of(stage.step, stage.activation)
        plan = settle(plan, activations={**plan.activations, key: changed})
    return plan


@_on(StageClosed)
def _stage_closed(plan: Plan, event: StageClosed, at: datetime) -> Plan:
    stage = plan.stages.get(event.stage_id)
    if stage is None:
        return plan
    closed = close_stage(stage, event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: closed})
    counts: dict[str, Json] = {
        "total": stage.rows_done + stage.rows_failed,
        "completed": stage.rows_done,
        "failed": stage.rows_failed,
        "frames": stage.frames_done,
    }
    envelope = Envelope(
        {
            "status": "error" if event.status == "failed" else "success",
            "meta": {"stage_id": str(stage.stage_id), "loop_id": str(stage.loop_id)},
        }
    )
    if (ref := event.payload_ref) is None:
        envelope = envelope.with_fields(data=counts)
    else:
        rows = ResultRef.to_rows(plan.execution_id, stage.step, stage.loop_id, ref)
        envelope = envelope.with_fields(counts=counts, ref=rows.to_json()).with_payload(ref)
    if event.status == "failed":
        envelope = envelope.with_fields(error={"message": event.error, "rows": list(stage.errors)})
    return settle(plan, results={**plan.results, stage.step: envelope})


def _frame(plan: Plan, event: FrameEvent, at: datetime) -> Plan:
    stage = plan.stages.get(event.stage_id)
    if stage is None:
        return plan
    if event.frame_id not in stage.frames and not isinstance(event, FrameDispatched):
        return plan
    changed = absorb_in_stage(stage, event, at)
    plan = copied(plan, stages={**plan.stages, stage.stage_id: changed})
    if isinstance(event, FrameCommitted):
        plan = _with_ctx(plan, event.ctx, groups_of(event.ctx_elsewhere))
    if changed.frames_done != stage.frames_done:
        plan = _count(plan, changed.step, changed.rows_done, changed.rows_failed)
        if changed.kind == "fanout":
            plan = _count_shards(plan, changed)
    return plan


def _count(plan: Plan, step: str, done: int, failed: int) -> Plan:
    """Set the progress of a loop in a fresh copy of the plan."""
    loop = {**plan.loops.get(step, {}), "done": done, "failed": failed}
    return settle(plan, loops={**plan.loops, step: loop})


def _count_shards(plan: Plan, stage: Stage) -> Plan:
    known = plan.fanouts.get(stage.step, {})
    fanout = {**known, "done": stage.shards_done, "failed": stage.shards_failed}
    return settle(plan, fanouts={**plan.fanouts, stage.step: fanout})


@_on(LoopStarted)
def _loop_started(plan: Plan, event: LoopStarted, at: datetime) -> Plan:
    loop = {
        "loop_id": str(event.loop_id),
        "total": event.collection_size,
        "done": 0,
        "failed": 0,
        "collection_ref": event.collection_ref,
        "mode": event.mode,
        "completed": False,
    }
    return copied(plan, loops={**plan.loops, event.node_name: loop})


@_on(LoopDone)
def _loop_done(plan: Plan, event: LoopDone, at: datetime) -> Plan:
    step = event.node_name
    return copied(plan, loops={**plan.loops, step: {**plan.loops.get(step, {}), "completed": True}})


@_on(LoopFanoutStarted)
def _fanout_started(plan: Plan, event: LoopFanoutStarted, at: datetime) -> Plan:
    fanout = {
        "loop_id": str(event.loop_id),
        "total_shards": event.total_shards,
        "done": 0,
        "failed": 0,
        "status": "running",
    }
    return copied(plan, fanouts={**plan.fanouts, event.node_name: fanout})


@_on(LoopFaninCompleted)
def _fanin(plan: Plan, event: LoopFaninCompleted, at: datetime) -> Plan:
    step = event.node_name
    known = {**plan.fanouts.get(step, {}), "status": event.status or "completed"}
    return copied(plan, fanouts={**plan.fanouts, step: known})


@_on(PlaybookCompleted)
def _completed(plan: Plan, event: PlaybookCompleted, at: datetime) -> Plan:
    return _ended(plan, event, PARTIAL if event.status == PARTIAL else COMPLETED, at)


@_on(PlaybookFailed)
def _failed(plan: Plan, event: PlaybookFailed, at: datetime) -> Plan:
    return _ended(plan, event, FAILED, at)


@_on(ExecutionCancelled)
def _cancelled(plan: Plan, event: ExecutionCancelled, at: datetime) -> Plan:
    return _ended(plan, event, CANCELLED, at)


def _ended(
    plan: Plan,
    event: PlaybookCompleted | PlaybookFailed | ExecutionCancelled,
    status: str,
    at: datetime,
) -> Plan:
    if plan.has_ended:
        return plan  # a terminal status is sticky
    return copied(
        plan,
        status=status,
        ended_at=at,
        result=None if isinstance(event, ExecutionCancelled) else event.result,
        output=None if isinstance(event, ExecutionCancelled) else event.payload_ref,
        error=event.error,
        activations={},
        commands={},
        stages={},
    )


@_on(ExecutionSuspended)
def _suspended(plan: Plan, event: ExecutionSuspended, at: datetime) -> Plan:
    return copied(plan, is_suspended=True, suspension=event.reason)


@_on(ExecutionResumed)
def _resumed(plan: Plan, event: ExecutionResumed, at: datetime) -> Plan:
    return copied(plan, is_suspended=False, suspension=None)


@_on(ReplySent)
def _replied(plan: Plan, event: ReplySent, at: datetime) -> Plan:
    return copied(plan, is_replied=True)


@_on(RedriveRequested)
def _redriven(plan: Plan, event: RedriveRequested, at: datetime) -> Plan:
    return copied(plan, status=RUNNING, ended_at=None, error=None, failure=None)


def key_of(step: str, visit: int) -> str:
    """Name one activation of a step."""
    return f"{step}#{visit}"


_HANDLERS.update(dict.fromkeys(get_args(CommandEvent), _command))
_HANDLERS.update(dict.fromkeys(get_args(FrameEvent), _frame))
