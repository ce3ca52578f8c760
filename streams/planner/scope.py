"""What the templates of a playbook can see when the planner renders them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.execution.missing import Keys, Missing, filled, keys_from, missing
from streams.execution.plan import Activation, Plan
from streams.payload.port import Scope
from streams.payload.results import data_of
from streams.planner.draft import Moment
from streams.planner.needs import Unreadable
from streams.playbook.errors import ExpressionFailed
from streams.playbook.expressions import Template
from streams.playbook.views import result_view


def render(template: Template, plan: Plan, moment: Moment, args: Mapping[str, Any]) -> Any:
    """Render `template` for a step that was entered with `args`.

    Raises:
        ExpressionFailed: it cannot be rendered.
        NeedsPayload: it reads a result that was not loaded yet.
    """
    return template.render(_scope(template.ways, plan, moment, args))


def holds(template: Template | None, plan: Plan, moment: Moment, args: Mapping[str, Any]) -> bool:
    """Say whether a condition holds; one that is missing does."""
    return template is None or bool(render(template, plan, moment, args))


def input_of(plan: Plan, moment: Moment, activation: Activation) -> dict[str, Any]:
    """Return what a worker's templates of this step can see, results as references."""
    reads = moment.playbook.steps[activation.step].reads
    steps = {name: plan.results[name] for name in sorted(reads) if name in plan.results}
    owner = Scope(plan.tenant_id, plan.organization_id)
    places = {name: data_of(envelope, owner) for name, envelope in steps.items()}
    elsewhere = {
        name: (steps[name].get("ref") or {}).get("ref") or ref.uri
        for name, ref in places.items()
        if ref is not None
    }
    return {
        "workload": workload_of(plan, moment) if "workload" in reads else {},
        "ctx": plan.ctx,
        "args": activation.args,
        "steps": steps,
        **({"blobs_refs": elsewhere} if elsewhere else {}),
    }


def workload_of(plan: Plan, moment: Moment) -> dict[str, Any]:
    """Return the execution's inputs: the playbook's defaults and what the trigger gave."""
    given = plan.workload
    if given is None:
        assert plan.workload_ref is not None
        given = moment.known.payload(plan.workload_ref).get("workload", {})
    return {**moment.playbook.workload, **given}


def _scope(ways: Keys, plan: Plan, moment: Moment, args: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {way[0] for way in ways}
    scope: dict[str, Any] = {**args, "args": dict(args), "ctx": plan.ctx}
    scope |= {"execution_id": str(plan.execution_id), "path": plan.path}
    if "workload" in wanted:
        scope["workload"] = workload_of(plan, moment)
    owner = Scope(plan.tenant_id, plan.organization_id)
    for name in wanted & plan.results.keys():
        envelope, found = plan.results[name], {}
        for gap in missing(envelope, keys_from(name, ways), owner):
            found[gap.task] = _loaded(name, gap, moment)
        scope[name] = result_view(filled(envelope, found))
    return scope


def _loaded(name: str, gap: Missing, moment: Moment) -> Any:
    value = moment.known.result(gap.ref)
    if isinstance(value, Unreadable):
        raise ExpressionFailed(f"{{{{ {name} }}}}", f"the result of step {name!r} {value.why}")
    return value
