"""Events whose data is too large for the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.envelope.model import Event, NewEvent
from streams.payload.content import describe, key_of
from streams.payload.envelopes import (
    ENVELOPE,
    externalize_envelope,
    is_tombstone,
    resolve_envelope,
)
from streams.payload.errors import PayloadCorrupt, PayloadForeign, PayloadMissing
from streams.payload.memory import MemoryPayloadStore
from streams.payload.port import ARROW, Scope
from tests.conftest import make_event

LARGE: dict[str, Any] = {"data": {"text": "é" * 50_000, "number": 1.5}}
CARE = Scope("acme", "care")


def step_exit(**changes: Any) -> NewEvent:
    fields: dict[str, Any] = {
        "node_name": "fetch",
        "status": "success",
        "meta": {"activation": 1},
        "result": LARGE,
        "context": {"small": True},
    }
    return make_event(7, "step.exit", **(fields | changes))


def appended(event: NewEvent) -> Event:
    """Return the event as a reader has it; the log's own fields do not matter here."""
    names = ("type", "root", "tenant_id", "organization_id", "context", "result", "current_item")
    told = {name: getattr(event, name) for name in (*names, "payload_ref", "meta", "event_time")}
    numbers = dict.fromkeys(("event_id", "seq", "position", "stream_version", "schema_version"), 1)
    texts = ("stream_id", "aggregate_type", "aggregate_id", "schema_name", "producer", "checksum")
    more = dict.fromkeys((*texts, "correlation_id", "idempotency_key", "chain"), "")
    return Event(**told, **numbers, **more, ingest_time=event.event_time)


async def test_a_large_event_goes_and_comes_back_unseen() -> None:
    store, event = MemoryPayloadStore(compression="zstd"), step_exit()
    small = await externalize_envelope(store, event)
    assert (small.result, small.context) == (None, None)
    assert small.payload_ref is not None
    assert await externalize_envelope(store, event) == small
    back = await resolve_envelope(store, appended(small))
    assert (back.result, back.context, back.payload_ref) == (LARGE, {"small": True}, None)


@pytest.mark.parametrize(
    "event",
    [
        step_exit(result={"data": "small"}),
        step_exit(payload_ref=describe(CARE, b"rows", media_type=ARROW)),
        make_event(7, "result.expired", meta={"result_id": "1", "reason": "ttl"}, result=LARGE),
        step_exit(result=None, context=None),
    ],
)
async def test_other_events_stay_as_they_are(event: NewEvent) -> None:
    store = MemoryPayloadStore()
    assert await externalize_envelope(store, event) == event
    assert store.objects == {}
    assert await resolve_envelope(store, appended(event)) == appended(event)


async def test_a_lower_threshold_takes_more_out() -> None:
    event = step_exit(result={"data": "small"})
    assert (await externalize_envelope(MemoryPayloadStore(), event, 10)).payload_ref is not None


async def test_expired_data_comes_back_as_a_tombstone() -> None:
    store = MemoryPayloadStore()
    event = appended(await externalize_envelope(store, step_exit()))
    assert event.payload_ref is not None
    store.objects.clear()
    with pytest.raises(PayloadMissing):
        await resolve_envelope(store, event)
    back = await resolve_envelope(store, event, expired={event.payload_ref.sha256})
    assert is_tombstone(back.result)
    assert not is_tombstone(LARGE)


async def test_data_of_another_tenant_is_refused() -> None:
    store = MemoryPayloadStore()
    event = appended(await externalize_envelope(store, step_exit()))
    with pytest.raises(PayloadForeign, match="other"):
        await resolve_envelope(store, replace(event, tenant_id="other"))


@pytest.mark.parametrize("data", [b"no json", b"[]", b'{"seq": 9}'])
async def test_other_data_is_not_taken_for_an_event_s(data: bytes) -> None:
    store = MemoryPayloadStore()
    ref = await store.put(CARE, data, media_type=ENVELOPE)
    with pytest.raises(PayloadCorrupt, match="not the data of an event"):
        await resolve_envelope(store, appended(step_exit(payload_ref=ref)))
    assert key_of(ref) in store.objects
