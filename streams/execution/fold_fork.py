"""The fold of forks: an execution that begins with the state of another one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from streams.events.model import Json
from streams.events.reading import fields_of
from streams.events.types import ExecutionForked
from streams.execution.ctx import with_ctx
from streams.execution.fast_replace import copied
from streams.execution.handlers import Handlers
from streams.execution.plan import Activation, Plan, key_of
from streams.results.envelope import Envelope
from streams.results.spill import groups_json, groups_of

FORK_HANDLERS = Handlers()


@FORK_HANDLERS.on(ExecutionForked)
def _forked(plan: Plan, event: ExecutionForked, at: datetime) -> Plan:
    """Add one part of the state; parts have different entries, so their order is free."""
    visits = {**plan.visits, **_counts(event.visits or {})}
    entered = [_activation(fields) for fields in event.activations or ()]
    plan = copied(
        plan,
        fork_parts=plan.fork_parts - 1,
        is_initialized=bool(visits),
        visits=visits,
        results={**plan.results, **_envelopes(event.results or {})},
        activations={**plan.activations, **{key_of(one.step, one.number): one for one in entered}},
        setbacks={**plan.setbacks, **{k: str(v) for k, v in (event.setbacks or {}).items()}},
        last_step=event.last_step or plan.last_step,
    )
    return with_ctx(plan, event.ctx, groups_of(event.ctx_elsewhere))


def activation_json(activation: Activation) -> dict[str, Json]:
    """Return an activation that is entered again, as `execution.forked` carries it."""
    fields: dict[str, Json] = {"step": activation.step, "number": activation.number}
    if activation.args:
        fields["args"] = activation.args
    if (groups := groups_json(activation.args_elsewhere)) is not None and groups:
        fields["args_elsewhere"] = [*groups]
    return fields


def _activation(fields: Mapping[str, Json]) -> Activation:
    number = fields["number"]
    assert isinstance(number, int)
    return Activation(
        step=str(fields["step"]),
        number=number,
        args=fields_of(fields.get("args")),
        args_elsewhere=groups_of(fields.get("args_elsewhere")),
    )


def _counts(visits: Mapping[str, Json]) -> dict[str, int]:
    return {step: count for step, count in visits.items() if isinstance(count, int)}


def _envelopes(results: Mapping[str, Json]) -> dict[str, Envelope]:
    return {step: Envelope.parse(one) for step, one in results.items()}
