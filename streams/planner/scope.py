"""What the templates of a playbook can see when the planner renders them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams.execution.plan import Activation, Plan
from streams.payload.content import reference_from
from streams.planner.draft import Moment
from streams.planner.rules import LARGEST_EXPRESSION_PAYLOAD_BYTES
from streams.playbook.errors import ExpressionFailed
from streams.playbook.expressions import Template
from streams.playbook.views import result_view


def render(template: Template, plan: Plan, moment: Moment, args: Mapping[str, Any]) -> Any:
    """Render `template` for a step that was entered with `args`.

    Raises:
        ExpressionFailed: it cannot be rendered.
        NeedsPayload: it reads a result that was not loaded yet.
    """
    return template.render(_scope(template.names, plan, moment, args))


def holds(template: Template | None, plan: Plan, moment: Moment, args: Mapping[str, Any]) -> bool:
    """Say whether a condition holds; one that is missing does."""
    return template is None or bool(render(template, plan, moment, args))


def input_of(plan: Plan, moment: Moment, activation: Activation) -> dict[str, Any]:
    """Return what a worker's templates of this step can see, results as references."""
    reads = moment.playbook.steps[activation.step].reads
    steps = {name: plan.results[name] for name in sorted(reads) if name in plan.results}
    return {
        "workload": workload_of(plan, moment) if "workload" in reads else {},
        "ctx": plan.ctx,
        "args": activation.args,
        "steps": steps,
    }


def workload_of(plan: Plan, moment: Moment) -> dict[str, Any]:
    """Return the execution's inputs: the playbook's defaults and what the trigger gave."""
    given = plan.workload
    if given is None:
        assert plan.workload_ref is not None
        given = moment.known.payload(plan.workload_ref).get("workload", {})
    return {**moment.playbook.workload, **given}


def _scope(
    names: Iterable[str], plan: Plan, moment: Moment, args: Mapping[str, Any]
) -> dict[str, Any]:
    wanted = set(names)
    scope: dict[str, Any] = {**args, "args": dict(args), "ctx": plan.ctx}
    scope |= {"execution_id": str(plan.execution_id), "path": plan.path}
    if "workload" in wanted:
        scope["workload"] = workload_of(plan, moment)
    for name in wanted & plan.results.keys():
        scope[name] = _exposed(name, plan.results[name], moment)
    return scope


def _exposed(name: str, envelope: Mapping[str, Any], moment: Moment) -> dict[str, Any]:
    """Return a result as templates see it: the envelope, with the data's own fields beside."""
    whole = {k: v for k, v in envelope.items() if k != "_ref"}
    if (found := envelope.get("_ref")) is not None:
        ref = reference_from(found)
        if ref.byte_length > LARGEST_EXPRESSION_PAYLOAD_BYTES:
            raise ExpressionFailed(
                f"{{{{ {name} }}}}",
                f"the result of step {name!r} has {ref.byte_length} bytes, too many to be read "
                "between steps; select the fields you need in the step itself",
            )
        whole["data"] = moment.known.payload(ref)
    return result_view(whole)
