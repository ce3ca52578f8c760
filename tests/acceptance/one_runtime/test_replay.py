"""What was true at any moment of real executions: the replay has the state of the live fold.

STREAMS_TEST_CUTS sets how many moments are drawn; the promise is for 1,000.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.app import open_log, open_replay
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftBench
from streams.dev.bench.playbook_setup import register
from streams.events.model import Event, Root
from streams.execution.cancellation import cancelled
from streams.kafka.clients import groupless_consumer, started
from streams.kafka.names import event_topic
from streams.kafka.partitions import partition_of_id
from streams.payload.port import Scope
from streams.projector.core import View, absorb, checksums
from streams.replay.cutoff import Cutoff, KafkaOffset
from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]
CUTS = int(os.environ.get("STREAMS_TEST_CUTS", "60"))
OFFSET_CUTS = CUTS // 4
CODE = """
def main(n):
    if n % 7 == 3:
        raise ValueError("unlucky")
    return n
"""
TOPIC = event_topic("execution")
SLEEP = "import time\n\ndef main():\n    time.sleep(600)"


@dataclass(frozen=True)
class Lived:
    """An execution that has ended, and the checksums of the live fold after each of its events."""

    events: Sequence[Event]
    checksums: Sequence[dict[str, str]]
    partition: int
    offsets: Sequence[int]
    """Where each event is in its partition."""

    @property
    def root(self) -> Root:
        return self.events[0].root


async def test_any_past_moment_has_the_checksum_of_the_live_fold(runtime: Runtime) -> None:
    lived = [await _lived(runtime, one) for one in await _executions(runtime)]
    dice = random.Random(14)
    settings = runtime.settings
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    kinds = ["event", "place", "time"] * (CUTS // 4) + ["offset"] * OFFSET_CUTS
    async with open_replay(settings) as replay:
        for kind in kinds:
            one = dice.choice(lived)
            index = dice.randrange(len(one.events))
            cutoff, last = _cut(kind, one, index)
            state = await replay.state(one.root.id, scope, cutoff)
            assert state.as_of.seq == last, (kind, one.root, index)
            assert state.checksums == one.checksums[last - 1], (kind, one.root, last)


async def test_the_tables_have_the_checksum_of_the_replay(runtime: Runtime) -> None:
    settings = runtime.settings
    scope = Scope(settings.runtime.tenant_id, settings.runtime.organization_id)
    ended = await runtime.executions.connection.fetch(
        "SELECT root_id, seq FROM noetl.root_head WHERE root_type = 'execution' AND terminal "
        "ORDER BY root_id DESC LIMIT 20"
    )
    assert ended
    async with open_replay(settings) as replay:
        for root_id, seq in ended:
            await runtime.until(
                "SELECT last_seq = $2 FROM noetl.execution WHERE execution_id = $1", root_id, seq
            )
            state = await replay.state(root_id, scope, use_snapshots=False)
            live = await runtime.executions.connection.fetchval(
                "SELECT state_checksum FROM noetl.execution WHERE execution_id = $1", root_id
            )
            assert live == state.checksum_of("all"), root_id


def _cut(kind: str, one: Lived, index: int) -> tuple[Cutoff, int]:
    """Return a moment, and the last event that belongs to it."""
    event = one.events[index]
    if kind == "event":
        return Cutoff(event_id=event.event_id), event.seq
    if kind == "place":
        return Cutoff(seq=event.seq), event.seq
    if kind == "time":
        at = event.ingest_time
        return Cutoff(time=at), max(e.seq for e in one.events if e.ingest_time <= at)
    offset = one.offsets[index]
    count = sum(found <= offset for found in one.offsets)
    return Cutoff(offset=KafkaOffset(TOPIC, one.partition, offset)), count


async def _executions(runtime: Runtime) -> list[int]:
    """Run a workload with retries, one with failed rows, and a child that is cancelled."""
    world = MockWorld(facilities=1, patients=10, rows_per_page=1, error_rate=0.05)
    bench = PftBench(runtime.settings, runtime.data, timeout_s=1.0, say=print)
    pft = asyncio.create_task(bench.run(world, frame_size=5))
    child = playbook({"step": "sleep", "tool": {"kind": "python", "code": SLEEP}})
    await register(runtime.settings, yaml.safe_dump(child))
    loop = {"in": "{{ range(40) | list }}", "iterator": "n", "spec": {"mode": "parallel"}}
    parent = await runtime.start(
        playbook(
            {
                "step": "each",
                "loop": {**loop, "frame_policy": {"size": 4}},
                "tool": {"kind": "python", "args": {"n": "{{ iter.n }}"}, "code": CODE},
                "on_error": "continue",
                "next": "visit",
            },
            {
                "step": "visit",
                "tool": {"kind": "playbook", "path": child["metadata"]["path"]},
                "on_error": "continue",
                "next": "end",
            },
            {"step": "end", "tool": {"kind": "noop", "data": 1}},
        )
    )
    begun = "SELECT count(*) = 1 FROM noetl.event WHERE seq = 1 AND parent_execution_id = $1"
    await runtime.until(begun, parent)
    (row,) = await runtime.executions.connection.fetch(
        "SELECT root_id FROM noetl.event WHERE seq = 1 AND parent_execution_id = $1", parent
    )
    await _cancel(runtime, row["root_id"])
    ends = [await runtime.finish(parent), await runtime.finish(row["root_id"])]
    assert [one.status for one in ends] == ["PARTIAL", "CANCELLED"]
    run = await pft
    assert (run.ended.status, run.faults("playbook")) == ("COMPLETED", [])
    return [run.ended.execution_id, parent, row["root_id"]]


async def _cancel(runtime: Runtime, execution_id: int) -> None:
    settings = runtime.settings.runtime
    end = cancelled(
        Root("execution", execution_id),
        Scope(settings.tenant_id, settings.organization_id),
        by="test",
        reason=None,
        now=datetime.now(UTC),
        key=uuid4().hex,
        cause_id=None,
    )
    async with open_log(runtime.settings, role="test", lanes=1) as log:
        await log.store.append([end])


async def _lived(runtime: Runtime, execution_id: int) -> Lived:
    events = await runtime.events(execution_id)
    view, found = View(), []
    for event in events:
        view, _ = absorb(view, event)
        found.append(checksums(view))
    bootstrap = runtime.settings.event_store.connection.url
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(TOPIC, timeout=30).topics
    home = partition_of_id(execution_id, len(topics[TOPIC].partitions))
    offsets = await _offsets(bootstrap, execution_id, home, len(events))
    return Lived(events, found, home, offsets)


async def _offsets(bootstrap: str, execution_id: int, home: int, count: int) -> list[int]:
    """Return the offsets of an execution's events, once all are on Kafka."""
    consumer: AIOKafkaConsumer = await started(groupless_consumer(bootstrap))
    try:
        consumer.assign([TopicPartition(TOPIC, home)])
        found: list[int] = []
        async with asyncio.timeout(60):
            await consumer.seek_to_beginning()
            while len(found) < count:
                record: Any = await consumer.getone()
                if record.key == str(execution_id).encode():
                    found.append(record.offset)
        return found
    finally:
        await consumer.stop()
