"""Changes of `ctx` that an event carries, some of them in payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.events.model import Json
from streams.execution.fast_replace import settle
from streams.execution.plan import Plan
from streams.results.spill import Group, merged


def with_ctx(plan: Plan, changes: Mapping[str, Json] | None, spilled: Sequence[Group]) -> Plan:
    """Set an event's changes of `ctx` in a fresh copy of the plan, some of them in payloads."""
    if not changes and not spilled:
        return plan
    ctx, groups = merged(plan.ctx, plan.ctx_elsewhere, changes or {}, spilled)
    return settle(plan, ctx=ctx, ctx_elsewhere=groups)
