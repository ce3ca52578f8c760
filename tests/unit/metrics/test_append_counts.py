"""Appended events are counted by type, duplicates are not, and expired leases have a rate."""

from __future__ import annotations

from datetime import UTC, datetime

from streams.clock import SettableClock
from streams.events.model import NewEvent, Root
from streams.log.append_counts import AppendCounts
from streams.log.port import Appended, AppendOutcome, Receipt

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(event_type: str) -> NewEvent:
    return NewEvent(
        type=event_type,
        root=Root("execution", 1),
        tenant_id="acme",
        organization_id="care",
        idempotency_key=event_type,
        event_time=NOW,
    )


def receipt(*outcomes: AppendOutcome) -> Receipt:
    return Receipt(tuple(Appended(n, one, n, n, n, NOW, "") for n, one in enumerate(outcomes)))


def values(counts: AppendCounts) -> dict[tuple[str, ...], object]:
    found = [*counts.samples(), *counts.reaper_samples()]
    return {(one.metric.name, *one.labels): one.value for one in found}


def test_only_events_that_are_new_in_the_log_count() -> None:
    clock = SettableClock()
    counts = AppendCounts(clock.monotonic)
    batch = [event("frame.claimed"), event("frame.lease_expired"), event("frame.lease_expired")]
    new, known = AppendOutcome.APPENDED, AppendOutcome.DUPLICATE

    counts.add(batch, receipt(new, new, known))
    counts.add(batch, Receipt((), claimed_by=7))

    assert values(counts) == {
        ("noetl_events_appended_total", "frame.claimed"): 1,
        ("noetl_events_appended_total", "frame.lease_expired"): 1,
        ("noetl_frame_reaper_republished_total",): 1,
        ("frame_reaper_republish_rate",): 1 / 60,
    }
    clock.advance(61)
    assert values(counts)["frame_reaper_republish_rate",] == 0
