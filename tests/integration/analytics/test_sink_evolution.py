"""Sinks on a real Connect, over a topic of their own: a field is added, a record is unreadable."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from streams.analytics.counts import analytics_database
from streams.analytics.lag import LagReader
from streams.analytics.lake import lake_session, metadata_location
from streams.analytics.setup import prepare_sinks
from streams.analytics.sinks import AnalyticsSink, sinks
from streams.mirror.connect import ConnectClient
from streams.resources import folder
from streams.settings import Settings
from streams.topology import Topic, Topology
from streams.topology.broker import TopicAdmin
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]
SCHEMA = json.loads((folder("avro_schemas") / "Event.avsc").read_text("utf-8"))
REGION = {"name": "region", "type": ["null", "string"], "default": None}
EVENT: Mapping[str, Any] = {
    **{field["name"]: None for field in SCHEMA["fields"] if "default" in field},
    **{
        field["name"]: "x"
        for field in SCHEMA["fields"]
        if "default" not in field and field["type"] == "string"
    },
    **{"root_id": 7, "schema_version": 1, "event_time": 1_770_000_000_000},
}
HEADERS = {"seq": b"100", "position": b"200", "stream_version": b"3", "chain": b"c2hh"}


class Scratch:
    """A topic, and both sinks over it, with tables of their own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        tag = uuid4().hex[:12]
        self.topic, self.dead = f"noetl.test.{tag}.events", f"noetl.test.{tag}.dead"
        self.table = f"test_{tag}"
        database, lake = sinks(settings)
        self.database = self._moved(database, f"test-{tag}", "collection.name.format", self.table)
        self.lake = self._moved(lake, f"test-{tag}-lake", "iceberg.tables", f"noetl.{self.table}")
        self._producer = Producer(
            {"bootstrap.servers": settings.event_store.connection.url, "log_level": 0}
        )

    def _moved(self, sink: AnalyticsSink, name: str, key: str, table: str) -> AnalyticsSink:
        config = {
            key_: value for key_, value in sink.connector.config.items() if key_ != "topics.regex"
        } | {
            "topics": self.topic,
            key: table,
            "errors.deadletterqueue.topic.name": self.dead,
            "iceberg.control.commit.interval-ms": "1000",
        }
        connector = replace(sink.connector, name=name, config=config)
        return AnalyticsSink(connector, (self.topic,), self.dead)

    def topology(self) -> Topology:
        return Topology(
            tuple(
                Topic(
                    name=name,
                    partitions=1,
                    replication=1,
                    retention="forever",
                    cleanup="delete",
                    key=None,
                    schema=None,
                    writer="test",
                    readers=(),
                    why="A test.",
                )
                for name in (self.topic, self.dead)
            )
        )

    def send(self, event_id: int, schema: Mapping[str, Any], **more: Any) -> None:
        place = SerializationContext(self.topic, MessageField.VALUE)
        address = {"url": self.settings.serialization.schema_registry.url}
        with SchemaRegistryClient(address) as registry:
            encode = AvroSerializer(registry, json.dumps(schema))
            self.send_bytes(encode({**EVENT, "event_id": event_id, **more}, place))

    def send_bytes(self, value: bytes | None) -> None:
        self._producer.produce(self.topic, value, headers=dict(HEADERS))
        self._producer.flush(10)

    async def rows(self) -> list[dict[str, Any]]:
        async with analytics_database(self.settings) as database:
            try:
                found = await database.fetch(f"SELECT * FROM {self.table} ORDER BY event_id")
            except asyncpg.UndefinedTableError:
                return []
        return [dict(row) for row in found]

    async def lake_rows(self) -> list[dict[str, Any]]:
        location = await metadata_location(self.settings, self.table)
        if location is None:
            return []
        return await asyncio.to_thread(self._scan, location)

    def _scan(self, location: str) -> list[dict[str, Any]]:
        session = lake_session(self.settings)
        try:
            query = "SELECT * EXCLUDE (event_time, ingest_time, payload_ref_ipc_valid_until)"
            found = session.execute(f"{query} FROM iceberg_scan(?) ORDER BY event_id", [location])
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        finally:
            session.close()


@pytest.fixture
async def scratch(settings: Settings) -> AsyncIterator[Scratch]:
    if settings.analytics.host is None:
        pytest.skip("containers have no converter for the sinks")
    one = Scratch(settings)
    broker = TopicAdmin(settings.event_store.connection.url)
    await prepare_sinks(settings)
    await asyncio.to_thread(broker.apply, one.topology())
    async with ConnectClient(settings.connect.url) as connect:
        for sink in (one.database, one.lake):
            await connect.apply(sink.name, sink.connector.config)
            await connect.wait_until_running(sink.name)
        yield one
        for sink in (one.database, one.lake):
            await connect.stop(sink.name)
        for sink in (one.database, one.lake):
            await connect.wait_until_stopped(sink.name)
            await connect.delete(sink.name)
    await asyncio.to_thread(broker.delete, [one.topic, one.dead])


async def test_an_added_field_becomes_a_column_and_an_unreadable_record_a_dead_letter(
    scratch: Scratch,
) -> None:
    payload = {"uri": "noetl://x", "sha256": "ab", "media_type": "m", "byte_length": 5}
    scratch.send(1, SCHEMA, payload_ref=payload)
    scratch.send_bytes(b"not Avro")
    scratch.send(2, {**SCHEMA, "fields": [*SCHEMA["fields"], REGION]}, region="north")
    scratch.send(2, {**SCHEMA, "fields": [*SCHEMA["fields"], REGION]}, region="south")

    async def all_are_there() -> bool:
        found = await scratch.rows()
        return len(found) == 2 and found[1].get("region") == "south"

    await until(all_are_there, within_s=60)
    first, second = await scratch.rows()
    assert (first["event_id"], first["region"], second["region"]) == (1, None, "south")
    assert (first["seq"], first["position"], first["stream_version"]) == (100, 200, 3)
    assert first["chain"] == "c2hh"
    assert (first["payload_ref_sha256"], second["payload_ref_sha256"]) == ("ab", None)
    assert first["payload_ref_byte_length"] == 5

    async def all_are_in_the_lake() -> bool:
        return len(await scratch.lake_rows()) == 3

    await until(all_are_in_the_lake, within_s=60)
    found = await scratch.lake_rows()
    assert [row["region"] for row in found] in ([None, "north", "south"], [None, "south", "north"])
    assert (found[0]["position"], found[0]["payload_ref_sha256"]) == (200, "ab")

    lags = LagReader(scratch.settings.event_store.connection.url)
    await until(
        lambda: asyncio.to_thread(lambda: lags.read(scratch.database).dead_letters == 2),
        within_s=30,
    )
