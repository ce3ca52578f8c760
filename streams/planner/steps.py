"""Steps: entry, dispatch to a worker, exit by arcs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from streams.events.model import Json
from streams.events.text import shortened
from streams.events.types import CommandIssued, StepEnter, StepExit
from streams.execution.command import Command, CommandStatus
from streams.execution.initialization import ExecutionStart, child_event
from streams.execution.plan import Activation, Plan
from streams.ids import derive_id, derive_root_id
from streams.payload.port import Scope
from streams.planner.draft import Draft, split_values
from streams.planner.joins import is_awaited
from streams.planner.scope import holds, input_of, render
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Arc, Step
from streams.results.envelope import Envelope
from streams.results.spill import groups_json, merged

PLANNER_POOL = "planner"
"""Pool of the planner's own commands, which no worker gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnding:
    """Outcome of a step."""

    status: str = "success"
    error: str | None = None
    loop_id: int | None = None
    failed_rows: int = 0
    errors: tuple[dict[str, Json], ...] = field(default=())


def enter(draft: Draft, step: str, args: dict[str, Json], from_step: str | None) -> None:
    """Draft the entry of a step."""
    visit = draft.plan.visits.get(step, 0) + 1
    inline, groups = draft.spill("args", args, step, visit)
    draft.emit(
        StepEnter(
            node_name=step,
            node_type=_type_of(draft.playbook.steps[step]),
            activation=visit,
            from_step=from_step,
            args=inline,
            args_elsewhere=groups_json(groups),
        ),
        f"{step}/{visit}",
    )


def start(draft: Draft, activation: Activation) -> None:
    """Draft the first event of an entered step: none, a command, or a child execution."""
    step = draft.playbook.steps[activation.step]
    if activation.number > draft.moment.rules.max_visits:
        why = f"was entered {activation.number} times; check the arcs that lead back to it"
        leave(draft, activation, StepEnding(status="error", error=f"step {step.name} {why}"))
        return
    try:
        if not holds(step.when, draft.plan, draft.moment, activation):
            leave(draft, activation, StepEnding(status="skipped"))
        elif step.is_playbook:
            _start_child(draft, activation, step)
        elif step.tasks:
            kinds = [task.kind for task in step.tasks]
            tool = kinds[0] if len(kinds) == 1 else "pipeline"
            issue(draft, activation, tool, draft.pool_of(step.name))
        else:
            leave(draft, activation, StepEnding())
    except ExpressionFailed as error:
        leave(draft, activation, StepEnding(status="error", error=f"step {step.name}: {error}"))


def issue(
    draft: Draft, activation: Activation, tool: str, pool: str, extra: dict[str, Json] | None = None
) -> int:
    """Draft a command and return its id."""
    plan, name = draft.plan, f"{tool}/{activation.step}"
    purpose = "plan" if tool == "cursor.plan" else "command"
    command_id = derive_id(plan.execution_id, activation.number, f"{purpose}/{activation.step}")
    whole = {"input": input_of(plan, draft.moment, activation), **(extra or {})}
    document, ref = draft.externalize(whole)
    draft.emit(
        CommandIssued(
            node_name=activation.step,
            command_id=command_id,
            attempt=1,
            pool=pool,
            tool=tool,
            activation=activation.number,
            document=document,
            payload_ref=ref,
        ),
        f"{command_id}/{name}",
    )
    return command_id


def _start_child(draft: Draft, activation: Activation, step: Step) -> None:
    plan, moment = draft.plan, draft.moment
    config = _mapping("playbook", render(step.tasks[0].config, plan, moment, activation))
    path, version = str(config.get("path", "")), _version(config.get("version"))
    found = moment.known.playbook(path, version)
    if isinstance(found, str):
        leave(draft, activation, StepEnding(status="error", error=f"step {step.name}: {found}"))
        return
    workload = _mapping("workload", config.get("workload", config.get("args")) or {})
    command_id = issue(draft, activation, "playbook", PLANNER_POOL)
    child = derive_root_id(plan.execution_id, activation.number, f"child/{step.name}")
    inputs, ref = draft.externalize({"workload": workload})
    start = ExecutionStart(
        execution_id=child,
        scope=Scope(plan.tenant_id, plan.organization_id),
        catalog_id=found[0],
        path=path,
        version=found[1],
        pool=plan.pool,
        workload=None if inputs is None else inputs["workload"],
        payload_ref=ref,
    )
    draft.emit_child(
        child_event(
            start,
            parent_execution_id=plan.execution_id,
            parent_step=step.name,
            parent_command_id=command_id,
            key=f"playbook.initialized/{child}",
            now=moment.now,
        )
    )


def _version(value: Json) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, int | float | str):
            return int(value)
    except ValueError:
        pass
    raise ExpressionFailed("version", f"is {value!r}, not a number")


def after_command(draft: Draft, activation: Activation, command: Command) -> None:
    """Draft the end of a step whose command has ended."""
    if command.status is CommandStatus.COMPLETED:
        leave(draft, activation, StepEnding())
    else:
        why = command.error or f"its command was {command.status.lower()}"
        leave(draft, activation, StepEnding(status="error", error=f"step {command.step}: {why}"))


def leave(draft: Draft, activation: Activation, ending: StepEnding) -> None:
    """Draft a step's end and the entries of the next steps."""
    step = draft.playbook.steps[activation.step]
    changes: dict[str, Json] = {}
    try:
        if ending.status == "success" and step.sets is not None:
            changes = _values("set", render(step.sets, draft.plan, draft.moment, activation))
        taken, then, set_by_arcs = _judge(draft, activation, step, ending, changes)
        changes = {**changes, **set_by_arcs}
    except ExpressionFailed as error:
        why = f"step {step.name}: leaving it failed: {error}"
        ending, changes = replace(ending, status="error", error=why), {}
        taken, then = [], "continue" if step.on_error == "continue" else "fail"
    _exit(draft, activation, ending, changes, then)
    for name, args in taken:
        if not is_awaited(draft, name):
            enter(draft, name, args, step.name)


def _judge(
    draft: Draft, activation: Activation, step: Step, ending: StepEnding, changes: dict[str, Json]
) -> tuple[list[tuple[str, dict[str, Json]]], str, dict[str, Json]]:
    """Return the arcs taken with their arguments, how an error is handled, and what arcs set."""
    known = draft.plan.results.get(step.name)
    ctx, groups = merged(draft.plan.ctx, draft.plan.ctx_elsewhere, changes, ())
    plan = replace(draft.plan, ctx=ctx, ctx_elsewhere=groups)
    if ending.status == "skipped" or (ending.status == "error" and known is None):
        ended = Envelope.of(ending.status).with_fields(error=ending.error)
        plan = replace(plan, results={**plan.results, step.name: ended})
    elif known is None:
        plan = replace(plan, results={**plan.results, step.name: Envelope.of("success")})
    arcs, then = step.arcs, "go"
    if ending.status == "error":
        then = "continue" if step.on_error == "continue" else "handled"
        if then == "handled":
            arcs = tuple(arc for arc in arcs if arc.handles_error)
    taken: list[tuple[str, dict[str, Json]]] = []
    set_by_arcs: dict[str, Json] = {}
    for arc in arcs:
        if not holds(arc.when, plan, draft.moment, activation):
            continue
        taken.append((arc.step, _arguments(arc, plan, draft, activation)))
        if arc.sets is not None:
            set_by_arcs |= _values("set", render(arc.sets, plan, draft.moment, activation))
        if not step.inclusive:
            break
    if then == "handled" and not taken:
        then = "fail"
    return taken, then, set_by_arcs


def _arguments(arc: Arc, plan: Plan, draft: Draft, activation: Activation) -> dict[str, Json]:
    if arc.args is None:
        return {}
    return _values("args", render(arc.args, plan, draft.moment, activation))


def _values(name: str, value: Json) -> dict[str, Json]:
    values = _mapping(name, value)
    split_values(name, values)  # raises here, where it is the step's error
    return values


def _mapping(name: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ExpressionFailed(name, f"gives {type(value).__name__}; it must give a mapping")
    return value


def _exit(
    draft: Draft, activation: Activation, ending: StepEnding, changes: dict[str, Json], then: str
) -> None:
    inline, groups = draft.spill("ctx", changes, activation.step, activation.number)
    has_failed = ending.status == "error"
    draft.emit(
        StepExit(
            node_name=activation.step,
            status=ending.status,
            error=None if ending.error is None else shortened(ending.error),
            activation=activation.number,
            loop_id=ending.loop_id,
            ctx=inline,
            ctx_elsewhere=groups_json(groups),
            then=then if has_failed else None,
            failed_rows=ending.failed_rows if has_failed else None,
            errors=list(ending.errors) if has_failed else None,
        ),
        f"{activation.step}/{activation.number}",
    )


def _type_of(step: Step) -> str:
    if step.loop is not None:
        return "loop"
    if step.is_playbook:
        return "playbook"
    return "tool" if step.tasks else "route"
