"""Scope of the templates that the planner renders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from streams.events.model import Json
from streams.execution.plan import Activation, Plan
from streams.payload.port import Scope
from streams.planner.decision_inputs import Unreadable
from streams.planner.draft import Moment
from streams.playbook.errors import ExpressionFailed
from streams.playbook.plain_views import flat_scope
from streams.playbook.spelling import Spelling
from streams.playbook.template import Template
from streams.results.resolve import (
    Keys,
    NeededPayload,
    Resolving,
    keys_from,
    names_read,
    resolve,
    resolve_groups,
    run,
)
from streams.results.spill import Group, groups_json

T = TypeVar("T")


def render(
    template: Template, plan: Plan, moment: Moment, activation: Activation | None = None
) -> Json:
    """Render `template` for an entered step, or for none.

    Raises:
        ExpressionFailed: it cannot be rendered.
        NeedsPayload: it reads a result that was not loaded yet.
    """
    scope_of = _plain_scope if moment.playbook.spelling is Spelling.NOETL else _scope
    return template.render(scope_of(template.key_paths, plan, moment, activation))


def holds(
    template: Template | None, plan: Plan, moment: Moment, activation: Activation | None
) -> bool:
    """Return whether a condition holds; a missing one does."""
    return template is None or bool(render(template, plan, moment, activation))


def input_of(plan: Plan, moment: Moment, activation: Activation) -> dict[str, Json]:
    """Return the input of this step's templates for a worker, with results as references."""
    reads = moment.playbook.steps[activation.step].reads
    steps = {name: plan.results[name] for name in sorted(reads) if name in plan.results}
    owner = Scope(plan.tenant_id, plan.organization_id)
    payloads = {
        name if task is None else f"{name}.{task}": uri
        for name, envelope in steps.items()
        for task, uri in envelope.payloads(owner)
    }
    is_plain = moment.playbook.spelling is Spelling.NOETL
    return {
        "workload": workload_of(plan, moment) if is_plain or "workload" in reads else {},
        "ctx": plan.ctx,
        "args": activation.args,
        "steps": {name: envelope.to_json() for name, envelope in steps.items()},
        **_spilled("ctx_elsewhere", plan.ctx_elsewhere),
        **_spilled("args_elsewhere", activation.args_elsewhere),
        **({"blobs_refs": {**payloads}} if payloads else {}),
    }


def _spilled(name: str, groups: Sequence[Group]) -> dict[str, Json]:
    return {name: [*(groups_json(groups) or ())]} if groups else {}


def workload_of(plan: Plan, moment: Moment) -> dict[str, Json]:
    """Return the execution's inputs: the playbook's defaults merged with the trigger's."""
    given = plan.workload
    if given is None:
        assert plan.workload_ref is not None
        given = moment.known.payload(plan.workload_ref).get("workload", {})
    workload = {**moment.playbook.workload, **given}
    for name, template in moment.playbook.workload_templates.items():
        if name not in given:
            workload[name] = _rendered_input(template, workload, plan)
    return workload


def _rendered_input(template: Template, workload: dict[str, Json], plan: Plan) -> Json:
    """Return an input whose default is a template of other inputs; its text if that fails."""
    scope = flat_scope(workload=workload, ctx={}, steps={}, execution_id=str(plan.execution_id))
    started_at = plan.started_at.isoformat()
    try:
        return template.render({**scope, "now": lambda: started_at})
    except ExpressionFailed:
        return None


def _plain_scope(
    ways: Keys, plan: Plan, moment: Moment, activation: Activation | None
) -> dict[str, object]:
    """Return the scope of NoETL's spelling: flat names, plain values, the step's `output`."""
    wanted = {way[0] for way in ways}
    owner = Scope(plan.tenant_id, plan.organization_id)
    names = names_read("ctx", ways)
    spilled = resolve_groups(plan.ctx_elsewhere, None if names is None else names | wanted, owner)
    ctx = {**plan.ctx, **_resolved("ctx", spilled, moment)}
    steps: dict[str, object] = {}
    for name in wanted & plan.results.keys():
        whole = resolve(plan.results[name], keys_from(name, ways), owner, Spelling.NOETL)
        steps[name] = _resolved(name, whole, moment).view(Spelling.NOETL)
    scope = flat_scope(
        workload=workload_of(plan, moment),
        ctx=ctx,
        steps=steps,
        execution_id=str(plan.execution_id),
    )
    if activation is not None:
        scope |= _ending(ways, plan, moment, activation.step)
    return scope


def _ending(ways: Keys, plan: Plan, moment: Moment, step: str) -> dict[str, object]:
    """Return `output` and `event` of a step that has ended, for its changes and arcs."""
    known = plan.results.get(step)
    if known is None:
        return {}
    has_failed = known.status == "error"
    is_loop = moment.playbook.steps[step].loop is not None
    name = "loop.done" if is_loop else "call.error" if has_failed else "call.done"
    output: dict[str, object] = {"status": known.status, "error": known.fields.get("error")}
    keys = [key[1:] for key in keys_from("output", ways) if key[:1] == ("data",) or not key]
    if keys:
        owner = Scope(plan.tenant_id, plan.organization_id)
        whole = _resolved(step, resolve(known, keys, owner, Spelling.NOETL), moment)
        output["data"] = whole.view(Spelling.NOETL)
    return {"output": output, "event": {"name": name, "node_name": step}}


def _scope(
    ways: Keys, plan: Plan, moment: Moment, activation: Activation | None
) -> dict[str, object]:
    wanted = {way[0] for way in ways}
    owner = Scope(plan.tenant_id, plan.organization_id)
    args: dict[str, Json] = {}
    if activation is not None:
        names = names_read("args", ways)
        groups = resolve_groups(
            activation.args_elsewhere, None if names is None else names | wanted, owner
        )
        args = {**activation.args, **_resolved("args", groups, moment)}
    spilled = resolve_groups(plan.ctx_elsewhere, names_read("ctx", ways), owner)
    scope: dict[str, object] = {**args, "args": dict(args)}
    scope["ctx"] = {**plan.ctx, **_resolved("ctx", spilled, moment)}
    scope["vars"] = {} if activation is None else _vars(plan, activation)
    scope |= {"execution_id": str(plan.execution_id), "path": plan.path}
    if "workload" in wanted:
        scope["workload"] = workload_of(plan, moment)
    for name in wanted & plan.results.keys():
        whole = resolve(plan.results[name], keys_from(name, ways), owner)
        scope[name] = _resolved(name, whole, moment).view()
    return scope


def _vars(plan: Plan, activation: Activation) -> dict[str, Json]:
    """Return the values that the step's rules have set."""
    if (stage := plan.stages.get(activation.stage_id or 0)) is not None:
        return {**stage.vars}
    command = plan.commands.get(activation.command_id or 0)
    return {} if command is None or command.result is None else {**command.result.vars}


def _resolved(name: str, resolving: Resolving[T], moment: Moment) -> T:
    """Return the result of `resolving`, with the known payloads.

    Raises:
        ExpressionFailed: one of them cannot be read.
        NeedsResult: one of them was not loaded yet.
    """

    def read(need: NeededPayload) -> Json:
        value: Json | Unreadable = moment.known.result(need.ref)
        if not isinstance(value, Unreadable):
            return value
        if need.names:
            raise ExpressionFailed(f"{{{{ {name}.{need.names[0]} }}}}", value.why)
        raise ExpressionFailed(f"{{{{ {name} }}}}", f"the result of step {name!r} {value.why}")

    return run(resolving, read)
