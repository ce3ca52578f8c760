"""Facts equal a fold of the log, also when their role is killed or facts are lost."""

from __future__ import annotations

import asyncio
import signal
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from streams.facts.codec import FactCodec
from streams.facts.comparison import FactComparison
from streams.facts.kafka import KafkaFacts
from streams.facts.model import TOPICS, AuditFact, BillingFact, ExecutionFact, FrameFact
from streams.facts.port import FactRecord
from streams.kafka.event_reader import EventRecord, EventTopicReader
from streams.kafka.feed.port import TopicPartition
from streams.resources import folder
from streams.roles.fact_topics import compare_facts, newest_facts, rebuild_facts
from streams.schema.registry import FileRegistry
from tests.support.servers.runtime import Runtime, playbook
from tests.support.servers.second_role import second_role
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
UNKNOWN = b"1/2"
"""A frame that the log does not have."""
LOOP = {
    "step": "each",
    "loop": {"in": [1, 2, 3, 4, 5, 6, 7, 8], "iterator": "n", "frame_policy": {"size": 2}},
    "tool": {"kind": "noop", "data": "{{ iter.n * 2 }}"},
}


async def test_facts_equal_the_log_though_their_role_is_killed_and_facts_are_lost(
    runtime: Runtime,
) -> None:
    async with second_role(runtime, "facts-0") as role:
        first = await runtime.run(playbook(LOOP))
        await _equal(runtime)
        unfinished = await runtime.start(playbook(LOOP))
        role.send_signal(signal.SIGKILL)
        await role.wait()
        await runtime.finish(unfinished)
    async with second_role(runtime, "facts-0"):
        before = await _equal(runtime)
        await _assert_loop(runtime, first.execution_id)
        await _assert_same_bytes_at_a_position(runtime)

        await _assert_confluents_deserializer_reads_them(runtime, first.execution_id)

        (kept,) = await _facts(runtime, "execution", first.execution_id)
        await _damage(runtime, first.execution_id)
        damaged = {one.topic: one for one in (await compare_facts(runtime.settings)).topics}
        assert damaged["noetl.facts.execution"].missing >= 1
        assert damaged["noetl.facts.frame"].unknown == 1
        done = await rebuild_facts(runtime.settings)
        assert done.written >= 1
        assert (done.deleted, done.broken) == (1, before.broken)
        await _equal(runtime)
        assert await _facts(runtime, "execution", first.execution_id) == [kept]


async def _equal(runtime: Runtime) -> FactComparison:
    found: list[FactComparison] = []

    async def is_equal() -> bool:
        found.append(await compare_facts(runtime.settings))
        return found[-1].is_equal

    await until(is_equal, within_s=90)
    assert all(one.facts for one in found[-1].topics)
    return found[-1]


async def _facts(runtime: Runtime, kind: str, execution_id: int) -> list[Any]:
    topic, key = f"noetl.facts.{kind}", str(execution_id)
    return [*await newest_facts(runtime.settings, topic, key=key, limit=100)]


async def _assert_loop(runtime: Runtime, execution_id: int) -> None:
    (execution,) = await _facts(runtime, "execution", execution_id)
    assert isinstance(execution, ExecutionFact)
    assert execution.status == "COMPLETED"
    frames: list[FrameFact] = await _facts(runtime, "frame", execution_id)
    assert [(one.status, one.rows) for one in frames] == [("COMMITTED", 2)] * 4
    assert all(one.worker and one.ended_at for one in frames)
    every = await newest_facts(runtime.settings, "noetl.facts.billing", key=None, limit=10_000)
    days = [
        one for one in every if isinstance(one, BillingFact) and one.execution_id == execution_id
    ]
    assert sum(one.rows for one in days) == 8
    assert sum(one.bytes for one in days) >= sum(one.output_bytes for one in frames)
    acts = await newest_facts(runtime.settings, "noetl.facts.audit", key=None, limit=10_000)
    started = [one for one in acts if isinstance(one, AuditFact) and one.root_id == execution_id]
    assert [one.action for one in started] == ["playbook.initialized"]
    assert {"catalog.registered"} <= {one.action for one in acts if isinstance(one, AuditFact)}


async def _assert_same_bytes_at_a_position(runtime: Runtime) -> None:
    codec = await FactCodec.open(FileRegistry(folder("avro_schemas")))
    values: dict[tuple[str, bytes | None, int], set[bytes]] = defaultdict(set)
    for one in await _records(runtime):
        if one.value is not None and one.key != UNKNOWN:
            fact = await codec.decode(one.topic, one.value)
            assert one.key == fact.key.encode()
            values[one.topic, one.key, fact.position].add(one.value)
    assert values
    assert all(len(found) == 1 for found in values.values())


async def _records(runtime: Runtime) -> list[EventRecord]:
    bootstrap = runtime.settings.event_store.connection.url
    async with EventTopicReader(bootstrap, TOPICS) as reader:
        return [one async for records in reader.to_end() for one in records]


async def _damage(runtime: Runtime, execution_id: int) -> None:
    """Delete a fact, and publish one that the log does not have."""
    frames = (one for one in await _records(runtime) if one.topic == "noetl.facts.frame")
    frame = next(one for one in frames if one.value is not None)
    async with KafkaFacts(runtime.settings.event_store.connection.url, name="test") as writer:
        await writer.write(
            TopicPartition("test", 0),
            [
                FactRecord("noetl.facts.execution", str(execution_id).encode(), None, None),
                FactRecord("noetl.facts.frame", UNKNOWN, frame.value, None),
            ],
        )


async def _assert_confluents_deserializer_reads_them(runtime: Runtime, execution_id: int) -> None:
    records = [one for one in await _records(runtime) if one.value is not None]
    async with _registry() as url:
        found = await asyncio.to_thread(_deserialized, url, records)
    assert {topic for topic, _ in found} == set(TOPICS)
    newest = {
        one["frame_id"]: one
        for topic, one in found
        if topic == "noetl.facts.frame" and one["execution_id"] == execution_id
    }
    assert [(one["status"], one["rows"]) for one in newest.values()] == [("COMMITTED", 2)] * 4
    assert all(one["dispatched_at"].tzinfo is not None for one in newest.values())


@asynccontextmanager
async def _registry() -> AsyncIterator[str]:
    """Serve our schemas by id, as a registry does."""
    ours = FileRegistry(folder("avro_schemas"))

    async def schema(request: web.Request) -> web.Response:
        return web.json_response({"schema": await ours.schema(int(request.match_info["id"]))})

    app = web.Application()
    app.router.add_get("/schemas/ids/{id}", schema)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def _deserialized(url: str, records: list[EventRecord]) -> list[tuple[str, dict[str, Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's imports, not ours
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroDeserializer
        from confluent_kafka.serialization import MessageField, SerializationContext

    with SchemaRegistryClient({"url": url}) as client:
        read = AvroDeserializer(client)
        return [
            (one.topic, read(one.value, SerializationContext(one.topic, MessageField.VALUE)))
            for one in records
        ]
