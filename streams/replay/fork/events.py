"""The events that begin a fork. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from streams.events.model import Json, NewEvent, PayloadRef, Root
from streams.events.types import ExecutionForked
from streams.execution.fold_fork import activation_json
from streams.execution.initialization import ExecutionStart, first_event
from streams.payload.port import Scope
from streams.replay.fork.overrides import Overrides
from streams.replay.fork.point import ForkPoint
from streams.results.spill import Group, groups_json

PART_BYTES = 40 * 1024
"""Entries of one part; a larger entry is a part of its own, and was part of an event before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkState:
    """What a fork begins with."""

    point: ForkPoint
    scope: Scope
    overrides: Overrides
    workload: dict[str, Json] | None
    """None: that of the source, in `workload_ref`."""
    workload_ref: PayloadRef | None
    ctx: dict[str, Json]
    ctx_elsewhere: list[Group]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StateEntry:
    """One entry of a field of `execution.forked`."""

    field: str
    name: str | None
    """None: an entry of a list."""
    value: Json


def fork_events(state: ForkState, execution_id: int, *, by: str, now: datetime) -> list[NewEvent]:
    """Return the first events of a fork, to be appended as one batch."""
    plan = state.point.plan
    parts = list(_parts(state))
    start = ExecutionStart(
        execution_id=execution_id,
        scope=state.scope,
        catalog_id=plan.catalog_id,
        path=plan.path,
        version=plan.catalog_version,
        workload=state.workload,
        payload_ref=state.workload_ref,
        pool=plan.pool,
        fork_parts=len(parts),
    )
    source = str(plan.execution_id)
    key = f"playbook.initialized/{execution_id}"
    first = first_event(start, key=key, now=now, correlation_id=source)
    forked = (_forked(state, part, number, by) for number, part in enumerate(parts, 1))
    others = (
        NewEvent(
            root=Root("execution", execution_id),
            tenant_id=state.scope.tenant_id,
            organization_id=state.scope.organization_id,
            idempotency_key=f"execution.forked/{execution_id}/{event.part}",
            event_time=now,
            correlation_id=source,
            catalog_id=plan.catalog_id,
            **event.columns(),
        )
        for event in forked
    )
    return [replace(first, expected_version=0), *others]


def _forked(state: ForkState, part: Sequence[_StateEntry], number: int, by: str) -> ExecutionForked:
    def named(field: str) -> dict[str, Json] | None:
        return {str(e.name): e.value for e in part if e.field == field} or None

    again = [one.value for one in part if one.field == "activations"]
    is_first = number == 1
    return ExecutionForked(
        source_execution_id=state.point.plan.execution_id,
        source_position=state.point.position,
        source_chain=state.point.chain,
        state_checksum=state.point.checksum,
        part=number,
        by=by,
        overrides=(state.overrides.to_json() or None) if is_first else None,
        ctx=named("ctx"),
        ctx_elsewhere=(groups_json(state.ctx_elsewhere) or None) if is_first else None,
        results=named("results"),
        visits=named("visits"),
        activations=[one for one in again if isinstance(one, dict)] or None,
        setbacks=named("setbacks"),
        last_step=state.point.plan.last_step if is_first else None,
    )


def _parts(state: ForkState) -> Iterator[list[_StateEntry]]:
    """Yield the entries in parts that fit into events; at least one part."""
    part: list[_StateEntry] = []
    size = len(orjson.dumps([state.overrides.to_json(), state.ctx_elsewhere]))
    for entry in _entries(state):
        more = len(orjson.dumps([entry.name, entry.value]))
        if part and size + more > PART_BYTES:
            yield part
            part, size = [], 0
        part.append(entry)
        size += more
    yield part


def _entries(state: ForkState) -> Iterator[_StateEntry]:
    point = state.point
    for step, count in point.plan.visits.items():
        yield _StateEntry(field="visits", name=step, value=count)
    for activation in point.entered_again:
        yield _StateEntry(field="activations", name=None, value=activation_json(activation))
    for step, why in point.plan.setbacks.items():
        yield _StateEntry(field="setbacks", name=step, value=why)
    for name, value in state.ctx.items():
        yield _StateEntry(field="ctx", name=name, value=value)
    for step, envelope in point.results.items():
        yield _StateEntry(field="results", name=step, value=envelope.to_json())
