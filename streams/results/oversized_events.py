"""Oversized events: their data is spilled to the payload store and resolved again.

Each event type has one field for data of any size. Data that a writer stores itself, such as
a frame's rows, is not touched: its reference is the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict

import orjson

from streams.events.model import Event, Json, NewEvent, PayloadRef
from streams.events.seal import INLINE_MAX_BYTES
from streams.payload.content import check_owner
from streams.payload.errors import PayloadCorrupt
from streams.payload.port import JSON, PayloadStore, Scope

TOMBSTONE, MISSING = "tombstone", "missing"
PLACES: Mapping[str, tuple[str, str | None]] = {
    "playbook.initialized": ("context", None),
    "command.issued": ("context", "document"),
    "stage.opened": ("context", "document"),
    "command.completed": ("result", "data"),
    "playbook.completed": ("result", "data"),
}
"""The field of a type that can be spilled, or the key of it that can."""


class _DataField(TypedDict, total=False):
    """The column of an event that holds data of any size."""

    context: Json
    result: Json


@dataclass(frozen=True, slots=True)
class Expired:
    """When a reference expired, and why."""

    at: datetime
    reason: str


async def spill_event(
    store: PayloadStore, event: NewEvent, threshold: int = INLINE_MAX_BYTES
) -> NewEvent:
    """Return the event with its data behind a reference, where it is larger than `threshold`.

    Deterministic. An event whose type has no field for large data, or that has a payload
    already, is returned unchanged; if it is too large, the log rejects it.

    Raises:
        PayloadUnavailable: the store is down; retrying is safe.
    """
    place = PLACES.get(event.type)
    if place is None or event.payload_ref is not None:
        return event
    field, key = place
    whole: Json = getattr(event, field)
    value, rest = whole, None
    if key is not None:
        if not isinstance(whole, dict) or key not in whole:
            return event
        value, rest = whole[key], {k: v for k, v in whole.items() if k != key} or None
    elif whole is None:
        return event
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if len(data) <= min(threshold, INLINE_MAX_BYTES):
        return event
    ref = await store.put(Scope(event.tenant_id, event.organization_id), data, media_type=JSON)
    return replace(event, payload_ref=ref, **_data_field(field, rest))


def is_spilled(event: Event) -> bool:
    """Whether the data of an event is in its payload."""
    ref, place = event.payload_ref, PLACES.get(event.type)
    if ref is None or place is None or ref.media_type != JSON:
        return False
    field, key = place
    whole = getattr(event, field)
    return whole is None or (key is not None and isinstance(whole, dict) and key not in whole)


async def resolve_event(
    store: PayloadStore, event: Event, *, expired: Mapping[str, Expired] | None = None
) -> Event:
    """Return the event as its writer had it before its data was spilled.

    `expired` has the digests of payloads whose references have expired: such data becomes a
    tombstone, which `is_tombstone` recognizes.

    Raises:
        PayloadForeign: the reference belongs to another tenant or organization.
        PayloadMissing: the object is missing, and its reference has not expired.
        PayloadCorrupt: it is damaged.
    """
    ref = event.payload_ref
    if ref is None or not is_spilled(event):
        return event
    check_owner(Scope(event.tenant_id, event.organization_id), ref)
    field, key = PLACES[event.type]
    found = await read_data(store, ref, expired)
    remaining = ref if expired is not None and ref.sha256 in expired else None
    return replace(event, payload_ref=remaining, **_put_back(event, field, key, found))


async def read_data(
    store: PayloadStore, ref: PayloadRef, expired: Mapping[str, Expired] | None = None
) -> Json:
    """Return the data of an event that is in this payload, or its tombstone.

    Raises:
        PayloadMissing: the object is missing, and its reference has not expired.
        PayloadCorrupt: it is damaged.
    """
    if expired is not None and (end := expired.get(ref.sha256)) is not None:
        return tombstone(ref, end)
    try:
        found: Json = orjson.loads(await store.get(ref))
    except orjson.JSONDecodeError as error:
        raise PayloadCorrupt(ref.uri, f"it is not the data of an event: {error}") from error
    return found


def _data_field(field: str, value: Json) -> _DataField:
    return {"context": value} if field == "context" else {"result": value}


def _put_back(event: Event, field: str, key: str | None, value: Json) -> _DataField:
    whole = value if key is None else {**(getattr(event, field) or {}), key: value}
    return _data_field(field, whole)


def without_data(event: Event) -> Event:
    """Return an event with a placeholder for data that is missing but has not expired."""
    ref = event.payload_ref
    if ref is None or not is_spilled(event):
        return event
    return replace(event, **_put_back(event, *PLACES[event.type], absence(ref)))


def absence(ref: PayloadRef) -> dict[str, Json]:
    """Return the placeholder of a payload that is missing but has not expired."""
    return _placeholder(MISSING, ref)


def tombstone(ref: PayloadRef, end: Expired) -> dict[str, Json]:
    """Return the placeholder of an expired payload."""
    return {**_placeholder(TOMBSTONE, ref), "expired_at": end.at.isoformat(), "reason": end.reason}


def is_tombstone(value: object) -> bool:
    """Return whether a value is the placeholder of an expired payload."""
    return isinstance(value, dict) and value.get("kind") == TOMBSTONE and "sha256" in value


def _placeholder(kind: str, ref: PayloadRef) -> dict[str, Json]:
    return {
        "kind": kind,
        "uri": ref.uri,
        "sha256": ref.sha256,
        "media_type": ref.media_type,
        "byte_length": ref.byte_length,
    }
