"""Metrics of the payload tiers, from the counters that `tiers.json` reports."""

from __future__ import annotations

from collections.abc import Iterator

from streams.metrics.metric import Sample
from streams.metrics.tiers import (
    TIER15_EXHAUSTED,
    TIER15_HIT_RATIO,
    TIER_BYTES,
    TIER_EVENTS,
    TIER_PASSED,
    TIER_READ_BYTES,
    TIER_READS,
)
from streams.payload.tiers.counts import TierSnapshot


def share_samples(found: TierSnapshot) -> Iterator[Sample]:
    """Yield what is shared and held: of the tiers of a process, and of a broker."""
    consumer = found["consumer"]
    yield Sample(TIER15_EXHAUSTED, found["events"].get("exhausted", 0), (consumer,))
    for event, count in found["events"].items():
        yield Sample(TIER_EVENTS, count, (consumer, event))
    for tier, size in found.get("bytes_in_use", {}).items():
        yield Sample(TIER_BYTES, size, (consumer, tier))


def tier_samples(found: TierSnapshot) -> Iterator[Sample]:
    """Yield all metrics of the tiers of a process."""
    consumer = found["consumer"]
    yield from share_samples(found)
    for one in found["reads"]:
        own = "true" if one["own"] else "false"
        yield Sample(TIER_READS, one["count"], (consumer, one["tier"], own))
    for tier, size in found["read_bytes"].items():
        yield Sample(TIER_READ_BYTES, size, (consumer, tier))
    for reason, count in found["fell_through"].items():
        yield Sample(TIER_PASSED, count, (consumer, reason))
    yield Sample(TIER15_HIT_RATIO, _hit_ratio(found), (consumer,))


def _hit_ratio(found: TierSnapshot) -> float:
    """Return the share of others' payloads that tier 1.5 served, of those not in tier 1."""
    others = [one for one in found["reads"] if not one["own"] and one["tier"] != "1"]
    hits = sum(one["count"] for one in others if one["tier"] == "1.5")
    return hits / max(1, sum(one["count"] for one in others))
