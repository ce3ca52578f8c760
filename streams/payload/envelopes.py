"""Events that are too large: their data goes to the payload store and comes back unseen.

What a writer stores itself, such as a frame's rows, is not touched: its reference is the data.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import orjson

from streams.envelope.catalogue import catalogue
from streams.envelope.model import Event, Json, NewEvent, PayloadRef
from streams.envelope.seal import INLINE_MAX_BYTES
from streams.payload.content import check_owner
from streams.payload.errors import PayloadCorrupt
from streams.payload.port import PayloadStore, Scope

ENVELOPE = "application/vnd.noetl.envelope+json"
"""Media type of the fields of an event that were taken out of it."""
TOMBSTONE = "tombstone"
_FIELDS = ("context", "result", "current_item")


async def externalize_envelope(
    store: PayloadStore, event: NewEvent, threshold: int = INLINE_MAX_BYTES
) -> NewEvent:
    """Return the event with its data behind a reference, where it has more than `threshold` bytes.

    The same event gives the same event again. One whose type carries no payload, or that has a
    payload already, comes back as it was; if it is too large, the log says so.

    Raises:
        PayloadUnavailable: the store is down; asking again is safe.
    """
    taken = {name: value for name in _FIELDS if (value := getattr(event, name)) is not None}
    kind = catalogue().types.get(event.type)
    if kind is None or kind.payload == "none" or event.payload_ref is not None or not taken:
        return event
    data = orjson.dumps(taken, option=orjson.OPT_SORT_KEYS)
    if len(data) <= min(threshold, INLINE_MAX_BYTES):
        return event
    scope = Scope(event.tenant_id, event.organization_id)
    ref = await store.put(scope, data, media_type=ENVELOPE)
    emptied: dict[str, Any] = dict.fromkeys(taken)
    return replace(event, payload_ref=ref, **emptied)


async def resolve_envelope(
    store: PayloadStore, event: Event, *, expired: Collection[str] = ()
) -> Event:
    """Return the event as its writer had it before `externalize_envelope`.

    `expired` has the digests of payloads whose references have ended: such data comes back as
    a tombstone, which `is_tombstone` knows.

    Raises:
        PayloadForeign: the reference belongs to another tenant or organization.
        PayloadMissing: the object is not there, and its reference has not ended.
        PayloadCorrupt: it is damaged.
    """
    ref = event.payload_ref
    if ref is None or ref.media_type != ENVELOPE:
        return event
    check_owner(Scope(event.tenant_id, event.organization_id), ref)
    if ref.sha256 in expired:
        return replace(event, result=tombstone(ref))
    try:
        found = orjson.loads(await store.get(ref))
    except orjson.JSONDecodeError as error:
        raise PayloadCorrupt(ref.uri, f"it is not the data of an event: {error}") from error
    if not isinstance(found, dict) or not found.keys() <= set(_FIELDS):
        raise PayloadCorrupt(ref.uri, "it is not the data of an event")
    return replace(event, payload_ref=None, **found)


def tombstone(ref: PayloadRef) -> dict[str, Json]:
    """Return what stands for a payload that has expired."""
    return {
        "kind": TOMBSTONE,
        "uri": ref.uri,
        "sha256": ref.sha256,
        "media_type": ref.media_type,
        "byte_length": ref.byte_length,
    }


def is_tombstone(value: Any) -> bool:
    """Say whether a value stands for a payload that has expired."""
    return isinstance(value, dict) and value.get("kind") == TOMBSTONE and "sha256" in value
