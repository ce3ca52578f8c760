"""The events a worker writes, each with the key that makes it happen once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from streams.events.model import NewEvent, Root, Routing
from streams.kafka.work.item import WorkItem

ERROR_CHARS = 4_000
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_WITH_LOOP = frozenset(("committed", "failed", "completed"))
_LEASED = frozenset(("claimed", "heartbeat"))


def fact(
    item: WorkItem,
    what: str,
    *,
    worker: str,
    version: int,
    turn: int,
    at: datetime,
    lease_s: int = 0,
    meta: Mapping[str, Routing] | None = None,
    **fields: Any,
) -> NewEvent:
    """Return `frame.<what>` or `command.<what>`, which `version` must be the moment for.

    The version and the worker's turn are part of the key: neither comes back, so what one
    attempt says is one fact however often it is sent, and never that of another attempt.
    """
    routing: dict[str, Routing] = {
        f"{item.kind}_id": str(item.entity_id),
        "attempt": item.attempt,
        "worker": worker,
    }
    if item.kind == "frame":
        routing["stage_id"] = str(item.stage_id)
    if what in _LEASED:
        routing["lease_seconds"] = lease_s
    if what in _WITH_LOOP:
        if item.loop_id is not None:
            routing["loop_id"] = str(item.loop_id)
        if item.kind == "frame" and item.shard_id is not None:
            routing["shard_id"] = item.shard_id
    return NewEvent(
        type=f"{item.kind}.{what}",
        root=Root("execution", item.execution_id),
        tenant_id=item.tenant_id,
        organization_id=item.organization_id,
        idempotency_key=f"{item.kind}.{what}/{item.entity_id}/{item.attempt}/{worker}/{version}.{turn}",
        event_time=at,
        catalog_id=item.catalog_id,
        node_name=item.step,
        expected_version=version,
        meta={**routing, **(meta or {})},
        **fields,
    )


def fit(text: str, limit: int = ERROR_CHARS) -> str:
    """Return an error text as an event can carry it."""
    plain = _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text) or "no reason was given"
    return plain if len(plain) <= limit else f"{plain[:limit]}… ({len(plain)} characters)"
