"""What the templates of a playbook can see when the planner renders them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streams.events.model import PayloadRef
from streams.execution.plan import Activation, Plan
from streams.payload.port import Scope
from streams.planner.draft import Moment
from streams.planner.needs import Unreadable
from streams.playbook.errors import ExpressionFailed
from streams.playbook.expressions import Template
from streams.playbook.views import result_view
from streams.results.references import data_of
from streams.results.resolve import (
    Keys,
    Missing,
    filled,
    keys_from,
    missing,
    tasks_sought,
    with_tasks,
)
from streams.results.spilled import names_read, sought


def render(
    template: Template, plan: Plan, moment: Moment, activation: Activation | None = None
) -> Any:
    """Render `template` for a step that was entered, or for none.

    Raises:
        ExpressionFailed: it cannot be rendered.
        NeedsPayload: it reads a result that was not loaded yet.
    """
    return template.render(_scope(template.key_paths, plan, moment, activation))


def holds(
    template: Template | None, plan: Plan, moment: Moment, activation: Activation | None
) -> bool:
    """Say whether a condition holds; one that is missing does."""
    return template is None or bool(render(template, plan, moment, activation))


def input_of(plan: Plan, moment: Moment, activation: Activation) -> dict[str, Any]:
    """Return what a worker's templates of this step can see, results as references."""
    reads = moment.playbook.steps[activation.step].reads
    steps = {name: plan.results[name] for name in sorted(reads) if name in plan.results}
    owner = Scope(plan.tenant_id, plan.organization_id)
    elsewhere = dict(_elsewhere(steps, owner))
    return {
        "workload": workload_of(plan, moment) if "workload" in reads else {},
        "ctx": plan.ctx,
        "args": activation.args,
        "steps": steps,
        **({"ctx_elsewhere": plan.ctx_elsewhere} if plan.ctx_elsewhere else {}),
        **({"args_elsewhere": activation.args_elsewhere} if activation.args_elsewhere else {}),
        **({"blobs_refs": elsewhere} if elsewhere else {}),
    }


def _elsewhere(steps: Mapping[str, Mapping[str, Any]], owner: Scope) -> Iterator[tuple[str, str]]:
    """Yield the names of data that is elsewhere, by step, or by step and task."""
    for name, envelope in steps.items():
        tasks = {f"{name}.{label}": one for label, one in (envelope.get("tasks") or {}).items()}
        for path, one in {name: envelope, **tasks}.items():
            if one is not None and (ref := data_of(one, owner)) is not None:
                yield path, (one.get("ref") or {}).get("ref") or ref.uri


def workload_of(plan: Plan, moment: Moment) -> dict[str, Any]:
    """Return the execution's inputs: the playbook's defaults and what the trigger gave."""
    given = plan.workload
    if given is None:
        assert plan.workload_ref is not None
        given = moment.known.payload(plan.workload_ref).get("workload", {})
    return {**moment.playbook.workload, **given}


def _scope(ways: Keys, plan: Plan, moment: Moment, activation: Activation | None) -> dict[str, Any]:
    wanted = {way[0] for way in ways}
    owner = Scope(plan.tenant_id, plan.organization_id)
    args: dict[str, Any] = {}
    if activation is not None:
        names = names_read("args", ways)
        groups = sought(activation.args_elsewhere, None if names is None else names | wanted, owner)
        args = {**activation.args, **_found("args", groups, moment)}
    moved = sought(plan.ctx_elsewhere, names_read("ctx", ways), owner)
    scope: dict[str, Any] = {**args, "args": dict(args)}
    scope["ctx"] = {**plan.ctx, **_found("ctx", moved, moment)}
    scope |= {"execution_id": str(plan.execution_id), "path": plan.path}
    if "workload" in wanted:
        scope["workload"] = workload_of(plan, moment)
    for name in wanted & plan.results.keys():
        keys, found = keys_from(name, ways), {}
        tasks = tasks_sought(plan.results[name], keys, owner)
        envelope = with_tasks(plan.results[name], _found(name, tasks, moment))
        for gap in missing(envelope, keys, owner):
            found[gap.task] = _loaded(name, gap, moment)
        scope[name] = result_view(filled(envelope, found))
    return scope


def _found(
    what: str, groups: Iterable[tuple[list[str], PayloadRef]], moment: Moment
) -> dict[str, Any]:
    """Return values that no event could carry."""
    found: dict[str, Any] = {}
    for names, ref in groups:
        values = moment.known.result(ref)
        if isinstance(values, Unreadable):
            raise ExpressionFailed(f"{{{{ {what}.{names[0]} }}}}", values.why)
        found |= {name: values[name] for name in names}
    return found


def _loaded(name: str, gap: Missing, moment: Moment) -> Any:
    value = moment.known.result(gap.ref)
    if isinstance(value, Unreadable):
        raise ExpressionFailed(f"{{{{ {name} }}}}", f"the result of step {name!r} {value.why}")
    return value
