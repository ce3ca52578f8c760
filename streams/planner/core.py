"""The plan's next events: a pure function of the plan, the playbook and the time.

It is called after every batch of events and returns everything that is missing, so it does not
matter which event caused the call, or how often it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from streams.events.errors import BadEvent
from streams.events.model import NewEvent, PayloadRef
from streams.events.reading import json_of, shape_of
from streams.events.text import shortened
from streams.events.types import (
    CommandCompleted,
    CommandFailed,
    CommandLeaseExpired,
    PlaybookCompleted,
    ResultEnvelope,
    WorkflowCompleted,
    WorkflowInitialized,
)
from streams.execution.attempts import CommandAttempt
from streams.execution.command import Command, CommandStatus
from streams.execution.json_object import JsonObject
from streams.execution.lease import RESTARTED
from streams.execution.plan import COMPLETED, PARTIAL, Activation, Plan
from streams.planner.draft import Draft, Moment, execution_root
from streams.planner.failure import (
    enter_sink,
    fail,
    persists_errors,
    runs_after_failure,
    with_sink_errors,
)
from streams.planner.joins import is_waiting
from streams.planner.leases import ends_at, expiry_of
from streams.planner.limits import Rules
from streams.planner.outcome import (
    cause_of,
    last_step_of,
    outcome_of,
    return_failed,
    returned_error,
)
from streams.planner.stage_closing import after_stage
from streams.planner.stage_opening import after_planning, start_loop
from streams.planner.stages import advance_stage, retry_at
from streams.planner.steps import PLANNER_POOL, after_command, enter, start
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Playbook

_ROUNDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Events to append as one batch, and payloads to store before them."""

    plan: Plan
    """The plan with the events in it."""
    events: tuple[NewEvent, ...] = ()
    payloads: tuple[tuple[PayloadRef, bytes], ...] = ()
    for_parent: tuple[NewEvent, ...] = ()
    """Events for the calling execution, each appended separately; a refusal is ignored."""
    wake_at: datetime | None = None
    """When to decide again even without new events."""


def decide(plan: Plan, moment: Moment) -> Decision:
    """Return the next events of `plan`.

    Ids and idempotency keys come from the entities' names, so deciding twice appends once.

    Raises:
        NeedsPayload, NeedsPlaybook: load it, and call again with it in `moment.known`.
    """
    draft = Draft(plan, moment)
    for _ in range(_ROUNDS):
        if not _may_advance(draft.plan) or not _advance(draft):
            break
    return Decision(
        plan=draft.plan,
        events=tuple(draft.events),
        payloads=tuple(draft.payloads.values()),
        for_parent=_parent_events(draft.plan, moment.now) if draft.plan.has_ended else (),
        wake_at=_wake_at(draft.plan, moment),
    )


def _may_advance(plan: Plan) -> bool:
    return not (plan.has_ended or plan.is_suspended or plan.fork_parts)


def decide_ended(plan: Plan, now: datetime) -> Decision:
    """Return the events of an ended plan for its caller."""
    return Decision(plan=plan, for_parent=_parent_events(plan, now))


def fail_unreadable(plan: Plan, rules: Rules, now: datetime, why: str) -> Decision:
    """Return the failure of an execution whose playbook cannot be loaded."""
    return _failed_at(plan, rules, now, "start", f"playbook {plan.path}: {why}")


def fail_refused(
    plan: Plan, rules: Rules, now: datetime, events: Sequence[NewEvent], refused: BadEvent
) -> Decision:
    """Return the failure of an execution whose next events the log refuses.

    Deciding again would give the same, because the author's values are the cause.
    """
    named = (event.node_name for event in events if event.type == refused.event_type)
    step = next(named, None) or "return"
    why = f"{refused}; pass a part of it on, or the step's result itself"
    return _failed_at(
        plan, rules, now, step, f"step {step}: its next events cannot be stored: {why}"
    )


def _failed_at(plan: Plan, rules: Rules, now: datetime, step: str, why: str) -> Decision:
    empty = Playbook(name=plan.path, path=plan.path, steps={}, first="")
    draft = Draft(plan, Moment(playbook=empty, rules=rules, now=now, floor=now))
    fail(draft, {"step": step, "error": why, "rows": 0})
    return Decision(
        plan=draft.plan, events=tuple(draft.events), for_parent=_parent_events(draft.plan, now)
    )


def _advance(draft: Draft) -> bool:
    """Draft what is missing now; say whether there was anything."""
    before = len(draft.events)
    if not draft.plan.is_initialized:
        draft.emit(WorkflowInitialized(steps=len(draft.playbook.steps)), "1")
        enter(draft, draft.playbook.first, {}, None)
    for activation in list(draft.plan.activations.values()):
        _advance_step(draft, activation)
    for stage in list(draft.plan.stages.values()):
        if stage.status == "OPEN":
            advance_stage(draft, stage.stage_id)
    for command in list(draft.plan.commands.values()):
        _check_command(draft, command)
    if len(draft.events) == before:
        _finish(draft)
    return len(draft.events) > before


def _advance_step(draft: Draft, activation: Activation) -> None:
    plan = draft.plan
    step = draft.playbook.steps[activation.step]
    loop = step.loop
    if activation.stage_id is not None:
        stage = plan.stages[activation.stage_id]
        if stage.status != "OPEN":
            after_stage(draft, activation, stage)
    elif activation.command_id is not None:
        command = plan.commands[activation.command_id]
        if command.has_ended:
            after_command(draft, activation, command)
    elif activation.planning_id is not None:
        command = plan.commands[activation.planning_id]
        if command.has_ended and loop is not None:
            after_planning(draft, activation, loop, command)
    elif is_waiting(step, plan, activation):
        return
    elif plan.failure is None or runs_after_failure(draft, step):
        if loop is not None:
            start_loop(draft, activation, loop)
        else:
            start(draft, activation)


def _check_command(draft: Draft, command: Command) -> None:
    """Draft the end of a command's lease that is over, and of the command after too many."""
    if command.status is not CommandStatus.CLAIMED or command.lease is None:
        return
    if (why := expiry_of(command.lease, draft.moment)) is None:
        return
    owner = command.lease.owner
    draft.emit(
        CommandLeaseExpired(
            node_name=command.step,
            command_id=command.command_id,
            attempt=command.attempt,
            worker=owner,
            reason=RESTARTED if why.reason == "restarted" else None,
        ),
        f"{command.command_id}/{command.attempt}",
        expected_version=command.version,
    )
    failures = command.failures + 1
    if failures >= draft.moment.rules.max_attempts:
        attempt = CommandAttempt(
            command_id=command.command_id,
            attempt=command.attempt,
            step=command.step,
            worker=owner,
        )
        error = f"its worker fell silent {failures} times; last was {owner}"
        draft.emit(attempt.failed(shortened(error)), f"{command.command_id}/given-up")


def _finish(draft: Draft) -> None:
    """Draft the end of an execution that has nothing left to wait for."""
    plan = draft.plan
    waiting = any(stage.status == "OPEN" for stage in plan.stages.values())
    waiting = waiting or any(not command.has_ended for command in plan.commands.values())
    if waiting or (plan.activations and plan.failure is None):
        return
    if plan.failure is not None:
        _end_failed(draft, cause_of(draft, plan.failure))
        return
    last = draft.playbook.last
    try:
        if last is not None and not plan.visits.get(last):
            if persists_errors(draft.playbook.steps[last]):
                outcome_of(draft)  # raises if the return fails: then that is persisted
            enter(draft, last, {"last_step": last_step_of(draft)}, plan.last_step)
            return
        value, ref = outcome_of(draft)
    except ExpressionFailed as error:
        _end_failed(draft, return_failed(error))
        return
    if value["status"] == "error" and draft.playbook.returns is not None:
        _end_failed(draft, returned_error(value))
        return
    status = PARTIAL if plan.setbacks else COMPLETED
    draft.emit(WorkflowCompleted(status=status), "1")
    draft.emit(
        PlaybookCompleted(
            status=status,
            error=shortened("; ".join(plan.setbacks.values())) or None,
            partial=True if plan.setbacks else None,
            result=shape_of(value, ResultEnvelope),
            payload_ref=ref,
        ),
        "1",
    )


def _end_failed(draft: Draft, failure: JsonObject) -> None:
    """Draft the next sink of a failed execution, or its end."""
    if not enter_sink(draft, failure):
        fail(draft, with_sink_errors(draft, failure))


def _parent_events(plan: Plan, now: datetime) -> tuple[NewEvent, ...]:
    """Return the events for the calling execution when this one has ended."""
    if plan.parent_execution_id is None or plan.parent_command_id is None:
        return ()
    well = plan.status in (COMPLETED, PARTIAL)
    result: ResultEnvelope = {
        "status": "success" if well else "error",
        "meta": {"execution_id": str(plan.execution_id), "status": plan.status},
    }
    if (outcome := shape_of(json_of(plan.result), ResultEnvelope)) is not None:
        result = _with_data(result, outcome)
    attempt = CommandAttempt(
        command_id=plan.parent_command_id,
        attempt=1,
        step=plan.parent_step or "playbook",
        worker=PLANNER_POOL,
    )
    if well:
        event: CommandCompleted | CommandFailed = attempt.completed(result, plan.output)
    else:
        why = f"playbook {plan.path} (execution {plan.execution_id}) ended {plan.status}"
        event = attempt.failed(f"{why}: {plan.error or 'no reason given'}", result)
    return (
        NewEvent(
            root=execution_root(plan.parent_execution_id),
            tenant_id=plan.tenant_id,
            organization_id=plan.organization_id,
            idempotency_key=f"command.ended/{plan.parent_command_id}/{plan.execution_id}",
            event_time=now,
            causation_id=plan.last_event_id,
            **event.columns(),
        ),
    )


def _with_data(result: ResultEnvelope, outcome: ResultEnvelope) -> ResultEnvelope:
    """Return a result with the data of an execution's outcome, or its reference."""
    if "data" in outcome:
        result["data"] = outcome["data"]
    if "ref" in outcome:
        result["ref"] = outcome["ref"]
    if "extracted" in outcome:
        result["extracted"] = outcome["extracted"]
    return result


def _wake_at(plan: Plan, moment: Moment) -> datetime | None:
    """Return the next time at which the decision changes without new events."""
    if plan.has_ended or plan.is_suspended:
        return None
    rules, times = moment.rules, []
    for stage in plan.stages.values():
        for frame in stage.frames.values():
            if frame.lease is not None:
                times.append(ends_at(frame.lease, moment))
            elif (at := retry_at(frame, rules.retry_delay)) is not None:
                times.append(at)
    for command in plan.commands.values():
        if command.lease is not None:
            times.append(ends_at(command.lease, moment))
    return min(times, default=None)
