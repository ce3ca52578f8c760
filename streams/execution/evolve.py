"""The fold: an execution's state after one more event. Pure, and the only one there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from streams.errors import Inconsistent
from streams.events.model import Event
from streams.events.types import AnyEvent, PlaybookInitialized, typed
from streams.execution.fast_replace import copied, settle
from streams.execution.fold_endings import ENDING_HANDLERS
from streams.execution.fold_fork import FORK_HANDLERS
from streams.execution.fold_loops import LOOP_HANDLERS
from streams.execution.fold_steps import STEP_HANDLERS
from streams.execution.handlers import Handler
from streams.execution.plan import Plan

_HANDLERS: dict[type[object], Handler[Any]] = {
    **STEP_HANDLERS.of,
    **LOOP_HANDLERS.of,
    **ENDING_HANDLERS.of,
    **FORK_HANDLERS.of,
}
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
    after = settle(
        copied(plan) if after is plan else after,
        last_event_type=event.type,
        last_node_name=node_name or plan.last_node_name,
        last_event_id=event.event_id,
        seq=seq,
    )
    return _advanced(after, ()) if plan.ahead else after


def absorb_own(plan: Plan, appended: Mapping[int, int]) -> Plan:
    """Note events that are in the plan already: we appended them ourselves.

    `appended` has their ids by their places.
    """
    after = _advanced(plan, appended)
    return settle(after, last_event_id=appended[max(appended)]) if appended else after


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
        pool=known.pool,
        fork_parts=known.fork_parts or 0,
        workload=None if known.payload_ref else known.workload or {},
        workload_ref=known.payload_ref,
        last_event_type=event.type,
        last_event_id=event.event_id,
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


def _advanced(plan: Plan, seqs: Iterable[int]) -> Plan:
    seq, ahead = plan.seq, set(plan.ahead)
    ahead.update(place for place in seqs if place > seq)
    while seq + 1 in ahead:
        seq += 1
        ahead.discard(seq)
    return copied(plan, seq=seq, ahead=frozenset(ahead))
