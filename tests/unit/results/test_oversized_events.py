"""Events whose data is too large for the log."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from streams.events.catalogue import catalogue
from streams.events.model import Event, NewEvent
from streams.events.seal import INLINE_MAX_BYTES
from streams.payload.content import describe
from streams.payload.errors import PayloadCorrupt, PayloadForeign, PayloadMissing
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON, Scope
from streams.results.oversized_events import (
    PLACES,
    Expired,
    is_tombstone,
    resolve_event,
    spill_event,
    without_data,
)
from streams.settings.payload_store import EVENT_BYTES
from tests.conftest import make_event

LARGE: dict[str, Any] = {"data": {"text": "é" * 50_000, "number": 1.5}}
CARE = Scope("acme", "care")


def ended(**changes: Any) -> NewEvent:
    fields: dict[str, Any] = {
        "node_name": "fetch",
        "status": "success",
        "meta": {"command_id": "5", "attempt": 1, "worker": "w"},
        "result": LARGE,
        "context": {"small": True},
    }
    return make_event(7, "command.completed", **(fields | changes))


def begun(**changes: Any) -> NewEvent:
    return make_event(7, **({"context": {"workload": LARGE}} | changes))


def appended(event: NewEvent) -> Event:
    """Return the event as a reader has it; the log's own fields do not matter here."""
    names = ("type", "root", "tenant_id", "organization_id", "context", "result", "current_item")
    columns = {name: getattr(event, name) for name in (*names, "payload_ref", "meta", "event_time")}
    numbers = dict.fromkeys(("event_id", "seq", "position", "stream_version", "schema_version"), 1)
    texts = ("stream_id", "aggregate_type", "aggregate_id", "schema_name", "producer", "checksum")
    more = dict.fromkeys((*texts, "correlation_id", "idempotency_key", "chain"), "")
    return Event(**columns, **numbers, **more, ingest_time=event.event_time)


async def test_a_large_event_goes_and_comes_back_unseen() -> None:
    store, event = MemoryPayloadStore(compression="zstd"), ended(result={**LARGE, "status": "ok"})
    small = await spill_event(store, event)
    assert (small.result, small.context) == ({"status": "ok"}, {"small": True})
    assert small.payload_ref is not None
    assert await spill_event(store, event) == small
    back = await resolve_event(store, appended(small))
    assert (back.result, back.payload_ref) == ({**LARGE, "status": "ok"}, None)


async def test_a_whole_field_goes_and_comes_back() -> None:
    store = MemoryPayloadStore()
    small = await spill_event(store, begun())
    assert (small.type, small.context) == ("playbook.initialized", None)
    back = await resolve_event(store, appended(small))
    assert (back.context, back.payload_ref) == ({"workload": LARGE}, None)


def test_the_settings_know_what_an_event_carries() -> None:
    assert EVENT_BYTES == INLINE_MAX_BYTES


def test_every_place_is_one_of_the_catalogue() -> None:
    for type, (field, _) in PLACES.items():
        kind = catalogue().types[type]
        assert kind.payload != "none"
        assert field in kind.user_data


@pytest.mark.parametrize(
    "event",
    [
        ended(result={"data": "small"}),
        ended(payload_ref=describe(CARE, b"rows", media_type=ARROW)),
        make_event(7, "result.expired", meta={"result_id": "1", "reason": "ttl"}, result=LARGE),
        ended(result=None, context=None),
    ],
)
async def test_other_events_stay_as_they_are(event: NewEvent) -> None:
    store = MemoryPayloadStore()
    assert await spill_event(store, event) == event
    assert store.objects == {}
    assert await resolve_event(store, appended(event)) == appended(event)


async def test_a_lower_threshold_takes_more_out() -> None:
    event = ended(result={"data": "not so small"})
    assert (await spill_event(MemoryPayloadStore(), event, 10)).payload_ref is not None


async def test_expired_data_comes_back_as_a_tombstone() -> None:
    store = MemoryPayloadStore()
    event = appended(await spill_event(store, ended()))
    assert event.payload_ref is not None
    store.objects.clear()
    with pytest.raises(PayloadMissing):
        await resolve_event(store, event)
    end = Expired(datetime(2026, 5, 16, tzinfo=UTC), "retention")
    back = await resolve_event(store, event, expired={event.payload_ref.sha256: end})
    assert isinstance(back.result, dict)
    assert is_tombstone(stone := back.result["data"])
    assert (stone["expired_at"], stone["reason"]) == ("2026-05-16T00:00:00+00:00", "retention")
    assert not is_tombstone(LARGE)


async def test_data_that_is_missing_is_not_said_to_have_expired() -> None:
    event = appended(await spill_event(MemoryPayloadStore(), ended()))
    changed = without_data(event)
    assert isinstance(changed.result, dict)
    assert changed.result["data"]["kind"] == "missing"
    assert not is_tombstone(changed.result["data"])
    assert changed.payload_ref == event.payload_ref


async def test_data_of_another_tenant_is_refused() -> None:
    store = MemoryPayloadStore()
    event = appended(await spill_event(store, ended()))
    with pytest.raises(PayloadForeign, match="other"):
        await resolve_event(store, replace(event, tenant_id="other"))


async def test_other_data_is_not_taken_for_an_event_s() -> None:
    store = MemoryPayloadStore()
    ref = await store.put(CARE, b"no json", media_type=JSON)
    with pytest.raises(PayloadCorrupt, match="not the data of an event"):
        await resolve_event(store, appended(ended(result=None, payload_ref=ref)))
