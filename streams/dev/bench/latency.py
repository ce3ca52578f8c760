"""Benchmark of the latency of one small execution on an idle stack.

One-step playbooks are triggered a few times a second, one at a time. The time runs from before
the record is published until a read_committed consumer has `playbook.completed`. The hops are
measured by the events' ingest times in Postgres, in whole milliseconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise
from statistics import median

from streams.dev.bench.executions import Executions, open_executions
from streams.dev.bench.kafka_receiver import Receiver
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import BenchReport, Figure, percentile
from streams.settings import Settings

TOPIC, PATH = "noetl.events.execution", "bench/one-step"
PLAYBOOK = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: one-step, path: {PATH}}}
workflow:
  - step: start
    tool: {{kind: noop}}
"""
EVERY_S, QUIET_S, WARM_UP = 0.25, 5.0, 5
TIMES = """
SELECT event_type, event_id, ingest_time, status FROM noetl.event
WHERE root_id = $1 ORDER BY seq"""
# Each hop ends with the ingest of this event, and begins where the previous one ended.
HOPS = {
    "trigger_to_start": "playbook.initialized",
    "start_to_command": "command.issued",
    "command_to_claim": "command.claimed",
    "claim_to_result": "command.completed",
    "result_to_end": "playbook.completed",
}
LAST_HOP = "end_to_kafka"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Journey:
    """One execution's milliseconds: total, and by hop."""

    total_ms: float
    hops_ms: dict[str, float]


async def bench_latency(settings: Settings, *, executions: int, say: Say) -> BenchReport:
    """Trigger `executions` executions, one after the other."""
    await register(settings, PLAYBOOK)
    with Receiver(settings.event_store.connection.url, [TOPIC]) as receiver:
        async with open_executions(settings) as started:
            receiving = asyncio.create_task(
                receiver.collect(2**62, give_up_after_s=QUIET_S + EVERY_S)
            )
            sent = await _trigger(started, WARM_UP + executions, say)
            arrived = {one.event_id: one.at for one in await receiving}
            journeys = [await _journey(started, key, at, arrived) for key, at in sent.items()]
    whole = [journey for journey in journeys[WARM_UP:] if journey is not None]
    lost = executions - len(whole)
    faults = (f"{lost} of {executions} executions did not complete on Kafka",) if lost else ()
    return BenchReport(_figures(whole), faults)


async def _trigger(started: Executions, times: int, say: Say) -> dict[str, float]:
    """Publish the records at a constant rate; return the send times by key."""
    sent = {}
    for number in range(times):
        at = time.time()
        sent[await started.publish(PATH)] = at
        await asyncio.sleep(EVERY_S)
        if number and number % 50 == 0:
            say(f"{number} of {times} triggered")
    return sent


async def _journey(
    started: Executions, key: str, sent_at: float, arrived: dict[str, float]
) -> Journey | None:
    """Return one execution's hops, or None if its end did not arrive."""
    rows = await started.connection.fetch(TIMES, await started.find(key))
    times = {row["event_type"]: row["ingest_time"].replace(tzinfo=UTC) for row in rows}
    ids = {row["event_type"]: str(row["event_id"]) for row in rows}
    end = arrived.get(ids.get("playbook.completed", ""))
    if end is None or not times.keys() >= set(HOPS.values()):
        return None
    marks = [sent_at, *(times[event].timestamp() for event in HOPS.values()), end]
    spans = [1000 * (later - earlier) for earlier, later in pairwise(marks)]
    return Journey(1000 * (end - sent_at), dict(zip([*HOPS, LAST_HOP], spans, strict=True)))


def _figures(journeys: list[Journey]) -> dict[str, Figure]:
    ordered = sorted(journey.total_ms for journey in journeys)
    hops = {
        name: round(median(journey.hops_ms[name] for journey in journeys), 1)
        for name in ([*HOPS, LAST_HOP] if journeys else [])
    }
    whole = sum(hops.values()) or 1.0
    return {
        "executions": len(journeys),
        "p50_ms": percentile(ordered, 50),
        "p99_ms": percentile(ordered, 99),
        "max_ms": percentile(ordered, 100),
        "hops_ms": hops,
        "hops_share": {name: round(value / whole, 3) for name, value in hops.items()},
    }
