"""Declared metrics of the payload tiers and of the payload store."""

from __future__ import annotations

from streams.metrics.metric import Metric
from streams.metrics.roles import BROKER, STORES, TIERS, WORKER

TIER_READS = Metric(
    name="noetl_tier_reads_total",
    kind="counter",
    help="Payload reads by the tier that served them; own: whether the process wrote the payload.",
    labels=("consumer", "tier", "own"),
    roles=TIERS,
)
TIER_READ_BYTES = Metric(
    name="noetl_tier_read_bytes_total",
    kind="counter",
    help="Bytes of payloads read, by the tier that served them.",
    labels=("consumer", "tier"),
    roles=TIERS,
)
TIER15_HIT_RATIO = Metric(
    name="tier15_hit_ratio",
    kind="gauge",
    help="Share of reads of others' payloads that tier 1.5 served, since the start; reads by "
    "tier 1 are not counted. 0 without reads.",
    labels=("consumer",),
    roles=TIERS,
)
TIER15_EXHAUSTED = Metric(
    name="tier15_budget_exhaustion_total",
    kind="counter",
    help="Payloads that were not shared in memory because the node's budget was used up.",
    labels=("consumer",),
    roles=(*TIERS, BROKER),
)
TIER_PASSED = Metric(
    name="noetl_tier_passed_over_total",
    kind="counter",
    help="Lookups in a tier that failed, by reason; the next tier is asked.",
    labels=("consumer", "reason"),
    roles=TIERS,
)
TIER_EVENTS = Metric(
    name="noetl_tier_events_total",
    kind="counter",
    help="Regions written, shared, refused and swept, and files evicted.",
    labels=("consumer", "event"),
    roles=(*TIERS, BROKER),
)
TIER_BYTES = Metric(
    name="noetl_tier_bytes_in_use",
    kind="gauge",
    help="Bytes that a tier holds; of tiers 1.5 and 2, those of the whole node.",
    labels=("consumer", "tier"),
    roles=(*TIERS, BROKER),
)
TIER3_BYTES = Metric(
    name="noetl_tier3_written_bytes_total",
    kind="counter",
    help="Bytes written to the payload store, as packed.",
    roles=STORES,
)
TIER3_OBJECTS = Metric(
    name="noetl_tier3_written_objects_total",
    kind="counter",
    help="Objects written to the payload store.",
    roles=STORES,
)
RESULT_COPIES = Metric(
    name="noetl_result_copy_reads_total",
    kind="counter",
    help="Lookups of results in tiers that hold copies; outcome: hit or miss.",
    labels=("tier", "outcome"),
    roles=(WORKER,),
)
