"""The fold of steps and their commands."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from streams.events.types import (
    CommandCompleted,
    CommandEvent,
    CommandFailed,
    CommandIssued,
    StepEnter,
    StepExit,
    WorkflowInitialized,
)
from streams.execution.command import Command, CommandStatus, absorb_command
from streams.execution.ctx import with_ctx
from streams.execution.fast_replace import copied, settle
from streams.execution.handlers import Handlers
from streams.execution.plan import Activation, Plan, key_of
from streams.results.envelope import Envelope
from streams.results.spill import groups_of

STEP_HANDLERS = Handlers()
_CHANGES = ("ctx", "ctx_elsewhere", "vars")


@STEP_HANDLERS.on(WorkflowInitialized)
def _initialized(plan: Plan, event: WorkflowInitialized, at: datetime) -> Plan:
    return copied(plan, is_initialized=True)


@STEP_HANDLERS.on(StepEnter)
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


@STEP_HANDLERS.on(StepExit)
def _exited(plan: Plan, event: StepExit, at: datetime) -> Plan:
    step, visit = event.node_name, event.activation
    ended = plan.activations.get(key_of(step, visit))
    plan = copied(
        plan,
        activations={k: v for k, v in plan.activations.items() if k != key_of(step, visit)},
        last_step=step if event.status != "skipped" else plan.last_step,
    )
    plan = with_ctx(plan, event.ctx, groups_of(event.ctx_elsewhere))
    if ended is not None:
        plan = _without_parts(plan, ended)
    if event.status == "error":
        plan = _failed_step(plan, event)
    elif event.status == "skipped":
        plan = settle(plan, results={**plan.results, step: Envelope.of("skipped")})
    return plan


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


@STEP_HANDLERS.on(*get_args(CommandEvent))
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
    fields = given.without(*_CHANGES).to_json()
    is_well = command.status is CommandStatus.COMPLETED
    fields.setdefault("status", "success" if is_well else "error")
    fields.setdefault("meta", {})
    envelope = Envelope(fields).with_payload(command.output)
    plan = settle(plan, results={**plan.results, command.step: envelope})
    return with_ctx(plan, given.ctx, given.spilled_ctx)


def _attach_command(plan: Plan, step: str, visit: int, command_id: int, tool: str) -> Plan:
    activation = plan.activations.get(key_of(step, visit))
    if activation is None:
        return plan
    if tool == "cursor.plan":
        changed = copied(activation, planning_id=command_id)
    else:
        changed = copied(activation, command_id=command_id)
    return settle(plan, activations={**plan.activations, key_of(step, visit): changed})
