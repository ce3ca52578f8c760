"""A decision in the making: events are drafted one by one, each on top of those before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from streams.events.model import Json, NewEvent, PayloadRef, Root, Routing
from streams.execution.evolve import apply
from streams.execution.plan import Plan
from streams.ids import derive_id
from streams.kafka.work.item import INLINE_DOCUMENT_BYTES
from streams.payload.content import describe
from streams.payload.port import JSON, Scope
from streams.planner.limits import Rules
from streams.planner.needs import Known
from streams.playbook.errors import ExpressionFailed
from streams.playbook.model import Playbook
from streams.results.limits import VALUES_BYTES
from streams.results.reference import Reference, result_uri
from streams.results.spill import Spill, is_inline, spill

_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")


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

    @property
    def room(self) -> int:
        """What an event carries of a value."""
        return min(self.moment.rules.inline_bytes, INLINE_DOCUMENT_BYTES)

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
        """Return `value` itself where an event can carry it, else a reference to it.

        Raises:
            ExpressionFailed: it is not JSON.
        """
        data = encode(value)
        if is_inline(data, self.room):
            return orjson.loads(data), None
        return None, self.attach(data, JSON)

    def spill(self, name: str, values: dict[str, Any], step: str, visit: int) -> dict[str, Any]:
        """Return the fields of an event for `values`: those it carries, and where others are."""
        parts = split_values(name, values)
        if not parts.spilled:
            return {name: values} if values else {}
        ref = self.attach(encode(parts.spilled), JSON)
        self.moment = replace(self.moment, known=self.moment.known.having(ref, parts.spilled))
        self._emit_stored(
            ref, name, step, derive_id(self.plan.execution_id, visit, f"{name}/{step}")
        )
        return parts.fields(name, ref)

    def _emit_stored(self, ref: PayloadRef, name: str, step: str, result_id: int) -> None:
        """Draft the event that makes a result of values that their own event only names."""
        uri = result_uri(self.plan.execution_id, step, name, result_id)
        reference = Reference.to_payload(uri, ref, store="object", scope="permanent")
        meta = {"result_id": str(result_id), "store": "object", "scope": "permanent", "task": name}
        self.emit(
            "result.stored",
            str(result_id),
            node_name=step,
            meta=meta,
            result=reference.to_json(),
            payload_ref=ref,
        )

    def attach(self, data: bytes, media_type: str) -> PayloadRef:
        """Return the reference of a payload that is stored before the events are appended."""
        scope = Scope(self.plan.tenant_id, self.plan.organization_id)
        ref = describe(scope, data, media_type=media_type)
        self.payloads[ref.sha256] = (ref, data)
        return ref


def split_values(name: str, values: dict[str, Any]) -> Spill:
    """Split an author's named values into those an event carries and those it cannot.

    Raises:
        ExpressionFailed: they are not JSON, or too many.
    """
    parts = spill(values, VALUES_BYTES, encode)
    if parts.has_too_many_names:
        raise ExpressionFailed(name, f"has {len(values)} names, too many; keep them under one")
    return parts


def encode(value: Any) -> bytes:
    """Return a value as JSON; what JSON does not have of numbers is null.

    Raises:
        ExpressionFailed: it cannot be JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise ExpressionFailed("its value", f"is not JSON: {error}") from error


def shortened(text: str, limit: int = 4_000) -> str:
    """Return `text` as an event can carry it, cut where it is longer than errors should be."""
    text = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def execution_root(execution_id: int) -> Root:
    """Return the root of an execution."""
    return Root("execution", execution_id)
