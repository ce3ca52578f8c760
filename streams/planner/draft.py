"""Draft of a decision: events are added one by one, each on top of those before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias, TypeVar

import orjson

from streams.events.model import Json, NewEvent, PayloadRef, Root
from streams.events.types import AnyEvent
from streams.execution.evolve import apply
from streams.execution.plan import Plan
from streams.ids import derive_id
from streams.kafka.work.item import INLINE_DOCUMENT_BYTES
from streams.payload.content import describe
from streams.payload.port import JSON, Scope
from streams.planner.decision_inputs import Known
from streams.planner.limits import Rules
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Playbook
from streams.results.limits import VALUES_BYTES
from streams.results.reference import ResultRef, result_uri, stored_result
from streams.results.spill import Group, Spill, group_of, is_inline, spill

Value = TypeVar("Value")
Spilled: TypeAlias = tuple[dict[str, Json] | None, list[Group] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Inputs of a decision besides the plan.

    `floor` is when this planner took the execution over: leases in the log get their full
    length from then on, because their owners may have been unable to renew them.
    `incarnations` is the newest incarnation of each worker.
    """

    playbook: Playbook
    rules: Rules
    now: datetime
    floor: datetime
    known: Known = field(default_factory=Known)
    incarnations: Mapping[str, str] = field(default_factory=dict)


class Draft:
    """Collects the events of one decision and the resulting plan."""

    def __init__(self, plan: Plan, moment: Moment) -> None:
        self.plan, self.moment, self._cause_id = plan, moment, plan.last_event_id
        self.events: list[NewEvent] = []
        self.payloads: dict[str, tuple[PayloadRef, bytes]] = {}

    @property
    def playbook(self) -> Playbook:
        """The execution's playbook."""
        return self.moment.playbook

    def pool_of(self, step: str) -> str:
        """Return the pool of a step: its own, else the execution's, else the playbook's."""
        named = self.playbook.steps[step].pool
        return self.plan.pool or named if named == self.playbook.pool else named

    @property
    def room(self) -> int:
        """Most bytes of a value in an event."""
        return min(self.moment.rules.inline_bytes, INLINE_DOCUMENT_BYTES)

    def emit(
        self,
        event: AnyEvent,
        key: str,
        *,
        expected_version: int | None = None,
        current_index: int | None = None,
    ) -> None:
        """Draft one event of this execution; `key` makes it unique among its type.

        `current_index` is the place of its row in the loop's collection.
        """
        plan = self.plan
        self.events.append(
            NewEvent(
                root=plan.root,
                tenant_id=plan.tenant_id,
                organization_id=plan.organization_id,
                idempotency_key=f"{event.TYPE}/{key}",
                event_time=self.moment.now,
                causation_id=self._cause_id,
                catalog_id=plan.catalog_id or None,
                parent_execution_id=plan.parent_execution_id,
                expected_version=expected_version,
                current_index=current_index,
                **event.columns(),
            )
        )
        self.plan = apply(plan, event, self.moment.now)

    def emit_child(self, event: NewEvent) -> None:
        """Draft the first event of another execution, appended together with ours."""
        self.events.append(event)

    def externalize(self, value: Value) -> tuple[Value | None, PayloadRef | None]:
        """Return `value` itself if an event can carry it, else a reference to it.

        Raises:
            ExpressionFailed: it is not JSON.
        """
        data = encode(value)
        if is_inline(data, self.room):
            return orjson.loads(data), None
        return None, self.attach(data, JSON)

    def spill(self, name: str, values: dict[str, Json], step: str, visit: int) -> Spilled:
        """Return the values that an event carries, and the groups of those in payloads."""
        parts = split_values(name, values)
        if not parts.spilled:
            return values or None, None
        ref = self.attach(encode(parts.spilled), JSON)
        self.moment = replace(self.moment, known=self.moment.known.having(ref, parts.spilled))
        self._emit_stored(
            ref, name, step, derive_id(self.plan.execution_id, visit, f"{name}/{step}")
        )
        return parts.inline, [group_of(parts.spilled, ref)]

    def _emit_stored(self, ref: PayloadRef, name: str, step: str, result_id: int) -> None:
        """Draft the `result.stored` event of spilled values."""
        uri = result_uri(self.plan.execution_id, step, name, result_id)
        reference = ResultRef.to_payload(uri, ref, store="object", scope="permanent")
        self.emit(stored_result(result_id, step, name, reference, ref), str(result_id))

    def attach(self, data: bytes, media_type: str) -> PayloadRef:
        """Return the reference of a payload that is stored before the events are appended."""
        scope = Scope(self.plan.tenant_id, self.plan.organization_id)
        ref = describe(scope, data, media_type=media_type)
        self.payloads[ref.sha256] = (ref, data)
        return ref


def split_values(name: str, values: dict[str, Json]) -> Spill:
    """Split an author's named values into those that fit into an event and those to spill.

    Raises:
        ExpressionFailed: they are not JSON, or too many.
    """
    parts = spill(values, VALUES_BYTES, encode)
    if parts.has_too_many_names:
        raise ExpressionFailed(name, f"has {len(values)} names, too many; nest them under one")
    return parts


def encode(value: object) -> bytes:
    """Return a value as JSON; NaN and infinities become null.

    Raises:
        ExpressionFailed: it cannot be JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise ExpressionFailed("its value", f"is not JSON: {error}") from error


def execution_root(execution_id: int) -> Root:
    """Return the root of an execution."""
    return Root("execution", execution_id)
