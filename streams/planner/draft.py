"""A decision in the making: events are drafted one by one, each on top of those before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from streams.envelope.model import Json, NewEvent, PayloadRef, Root, Routing
from streams.execution.evolve import apply
from streams.execution.plan import Plan
from streams.payload.content import describe
from streams.payload.port import JSON, Scope
from streams.planner.needs import Known
from streams.planner.rules import Rules
from streams.playbook.model import Playbook
from streams.work.item import INLINE_DOCUMENT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a decision depends on besides the plan.

    `floor` is when this planner took the execution over: a lease seen in the log is given
    its full length from then on, because its owner may have been unable to renew it.
    `lives` is the newest life of each worker.
    """

    playbook: Playbook
    rules: Rules
    now: datetime
    floor: datetime
    known: Known = field(default_factory=Known)
    lives: Mapping[str, str] = field(default_factory=dict)


class Draft:
    """Collects the events of one decision and the plan they lead to."""

    def __init__(self, plan: Plan, moment: Moment) -> None:
        self.plan, self.moment = plan, moment
        self.events: list[NewEvent] = []
        self.payloads: dict[str, tuple[PayloadRef, bytes]] = {}

    @property
    def playbook(self) -> Playbook:
        """The playbook that is followed."""
        return self.moment.playbook

    def emit(
        self,
        type: str,
        key: str,
        *,
        meta: Mapping[str, Routing] | None = None,
        node_name: str | None = None,
        node_type: str | None = None,
        status: str | None = None,
        error: str | None = None,
        context: Json = None,
        result: Json = None,
        payload_ref: PayloadRef | None = None,
        expected_version: int | None = None,
    ) -> None:
        """Draft one event of this execution; `key` tells it from others of its type."""
        plan = self.plan
        event = NewEvent(
            type=type,
            root=plan.root,
            tenant_id=plan.tenant_id,
            organization_id=plan.organization_id,
            idempotency_key=f"{type}/{key}",
            event_time=self.moment.now,
            catalog_id=plan.catalog_id or None,
            parent_execution_id=plan.parent_execution_id,
            node_name=node_name,
            node_type=node_type,
            status=status,
            error=None if error is None else shortened(error),
            meta=meta or {},
            context=context,
            result=result,
            payload_ref=payload_ref,
            expected_version=expected_version,
        )
        self.events.append(event)
        self.plan = apply(plan, event, self.moment.now)

    def emit_child(self, event: NewEvent) -> None:
        """Draft the first event of another execution, appended together with ours."""
        self.events.append(event)

    def externalize(self, value: Any) -> tuple[Any | None, PayloadRef | None]:
        """Return `value` itself where it is small, else a reference to it."""
        data = orjson.dumps(value)
        if len(data) <= min(self.moment.rules.inline_bytes, INLINE_DOCUMENT_BYTES):
            return value, None
        return None, self.attach(data, JSON)

    def attach(self, data: bytes, media_type: str) -> PayloadRef:
        """Return the reference of a payload that is stored before the events are appended."""
        scope = Scope(self.plan.tenant_id, self.plan.organization_id)
        ref = describe(scope, data, media_type=media_type)
        self.payloads[ref.sha256] = (ref, data)
        return ref


def shortened(text: str, limit: int = 4_000) -> str:
    """Return `text`, cut where it is longer than an error message should be."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def execution_root(execution_id: int) -> Root:
    """Return the root of an execution."""
    return Root("execution", execution_id)
