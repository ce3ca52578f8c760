"""Metrics of the tiers are the counters of `tiers.json`; bytes of tier 3 are what was written."""

from __future__ import annotations

from streams.payload.objects.memory import MemoryObjects
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.samples import tier_samples
from streams.results.copies.port import Copies


def test_each_counter_is_a_sample() -> None:
    counts = TierCounts("projector")
    for _ in range(3):
        counts.read("1.5", 100, own=False)
    counts.read("3", 10, own=False)
    counts.read("1", 10, own=False)
    counts.read("1.5", 5, own=True)
    counts.fell_through["expired"] += 2
    counts.events["exhausted"] += 4
    snapshot = {**counts.snapshot(), "bytes_in_use": {"2": 7}}

    found = {(one.metric.name, *one.labels): one.value for one in tier_samples(snapshot)}

    assert found == {
        ("tier15_budget_exhaustion_total", "projector"): 4,
        ("tier15_hit_ratio", "projector"): 0.75,
        ("noetl_tier_events_total", "projector", "exhausted"): 4,
        ("noetl_tier_bytes_in_use", "projector", "2"): 7,
        ("noetl_tier_reads_total", "projector", "1", "false"): 1,
        ("noetl_tier_reads_total", "projector", "1.5", "false"): 3,
        ("noetl_tier_reads_total", "projector", "1.5", "true"): 1,
        ("noetl_tier_reads_total", "projector", "3", "false"): 1,
        ("noetl_tier_read_bytes_total", "projector", "1"): 10,
        ("noetl_tier_read_bytes_total", "projector", "1.5"): 305,
        ("noetl_tier_read_bytes_total", "projector", "3"): 10,
        ("noetl_tier_passed_over_total", "projector", "expired"): 2,
    }


def test_copies_of_results_count_hits_and_misses_of_each_tier() -> None:
    copies = Copies(hits={"memory": 3}, misses={"memory": 1, "disk": 2})

    assert {one.labels: one.value for one in copies.samples()} == {
        ("memory", "hit"): 3,
        ("memory", "miss"): 1,
        ("disk", "miss"): 2,
    }


async def test_bytes_count_when_an_object_is_written_not_when_it_is_known() -> None:
    store = ContentStore(MemoryObjects())
    for _ in range(2):
        await store.put(Scope("acme", "care"), b"x" * 1000, media_type=JSON)

    found = {one.metric.name: one.value for one in store.counts.samples()}

    assert found["noetl_tier3_written_objects_total"] == 1
    written = found["noetl_tier3_written_bytes_total"]
    assert isinstance(written, int)
    assert 1000 <= written < 1100
