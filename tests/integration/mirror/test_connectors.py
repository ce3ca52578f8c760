"""The mirror's template on a real Connect, over a throw-away table of the log's shape.

Everything is renamed (database, slot, topics), so that the stack's own mirror is not touched.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from streams.cli import cli
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import (
    BadConnector,
    ConnectorFailed,
    ConnectorUnknown,
    ConnectRefused,
)
from streams.mirror.connectors import load, placeholders, render
from streams.resources import folder
from streams.settings import Settings
from streams.settings.event_store import Duty
from streams.topology import Topic, Topology
from streams.topology.broker import TopicAdmin

pytestmark = pytest.mark.stack

TABLE = """
CREATE SCHEMA noetl;
CREATE TABLE noetl.event (
  root_id bigint, seq bigint, position bigint GENERATED ALWAYS AS IDENTITY,
  root_type text NOT NULL, event_id bigint NOT NULL, event_type text NOT NULL,
  tenant_id text NOT NULL, organization_id text NOT NULL, stream_version bigint NOT NULL,
  ingest_time timestamp(3) NOT NULL, chain bytea NOT NULL, envelope bytea NOT NULL,
  not_for_the_mirror text DEFAULT 'x', PRIMARY KEY (root_id, seq)
) PARTITION BY RANGE (root_id);
CREATE TABLE noetl.event_low PARTITION OF noetl.event FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE noetl.event_high PARTITION OF noetl.event FOR VALUES FROM (1000) TO (MAXVALUE);
CREATE PUBLICATION noetl_mirror
  FOR TABLE noetl.event (root_type, root_id, event_id, envelope, ingest_time, seq, position,
    stream_version, chain, event_type, tenant_id, organization_id)
  WITH (publish = 'insert', publish_via_partition_root = true);
GRANT USAGE ON SCHEMA noetl TO noetl_mirror;
GRANT SELECT ON noetl.event TO noetl_mirror;
"""
INSERT = """
INSERT INTO noetl.event (root_id, seq, root_type, event_id, event_type, tenant_id,
  organization_id, stream_version, ingest_time, chain, envelope)
VALUES ($1, $2, 'execution', $3, 'frame.committed', $4, 'o', $2, $5, $6, $7)
"""
AT = datetime(2026, 2, 3, 4, 5, 6, 789000)
AWKWARD = 'ten"ant\\ {é} 00123'


class Scratch:
    """A database, topics and a connector of one test."""

    def __init__(self, settings: Settings, connect: ConnectClient) -> None:
        self.settings, self.connect = settings, connect
        self.tag = uuid4().hex[:12]
        self.name = f"test-{self.tag}"
        self.prefix = f"noetl.test.{self.tag}"
        self.database = f"test_{self.tag}"
        self.slot = f"test_{self.tag}"
        self.database_address: dict[str, str] = {}
        self.events, self.messages = f"{self.prefix}.events.execution", f"{self.prefix}.message"

    @property
    def moved_settings(self) -> Settings:
        return self.settings.with_database(self.database)

    async def sql(self, statement: str, *arguments: Any, duty: Duty = "owner") -> None:
        dsn = self.moved_settings.event_store.canonical_connection.dsn(duty)
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(statement, *arguments)
        finally:
            await connection.close()

    def topology(self) -> Topology:
        def topic(name: str) -> Topic:
            return Topic(
                name=name,
                partitions=1,
                replication=1,
                retention="forever",
                cleanup="delete",
                key="root id",
                schema=None,
                writer="test",
                readers=(),
                why="A test.",
            )

        return Topology((topic(self.events), topic(self.messages)))

    def config(self, **changes: str) -> dict[str, str]:
        """Return the mirror's own configuration, moved to this test's names."""
        (template,) = [one for one in load(folder("connectors")) if one.name == "noetl-mirror"]
        text = json.dumps(dict(render(template, placeholders(self.moved_settings)).config))
        text = text.replace("noetl.events.", f"{self.prefix}.events.")
        for was, now in {"noetl.mirror": self.prefix, r"noetl\\.mirror": self.prefix}.items():
            text = text.replace(was, now)
        moved: dict[str, str] = json.loads(text)
        return {**moved, **self.database_address, "slot.name": self.slot, **changes}

    async def insert(self, root_id: int, seq: int, tenant: str = "t") -> bytes:
        envelope = b"\x00\x00\x00\x00\x07" + bytes(range(256)) + str((root_id, seq)).encode()
        chain = hashlib.sha256(envelope).digest()
        event_id = 9_000_000_000_000_000_000 + root_id * 100 + seq
        await self.sql(INSERT, root_id, seq, event_id, tenant, AT, chain, envelope)
        return envelope

    async def read(self, topic: str, count: int, root_id: int | None = None) -> list[Message]:
        """Return the first `count` committed records of `topic`, or of one root in it."""
        return await asyncio.to_thread(self._read, topic, count, root_id)

    def _read(self, topic: str, count: int, root_id: int | None) -> list[Message]:
        consumer = Consumer(
            {
                "bootstrap.servers": self.settings.event_store.connection.url,
                "group.id": uuid4().hex,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        found: list[Message] = []
        try:
            while len(found) < count:
                message = consumer.poll(30)
                assert message is not None, f"{len(found)} of {count} records came from {topic}"
                assert message.error() is None, message.error()
                if root_id is None or message.key() == str(root_id).encode():
                    found.append(message)
            return found
        finally:
            consumer.close()

    async def make_topics(self) -> None:
        await asyncio.to_thread(
            TopicAdmin(self.settings.event_store.connection.url).apply, self.topology()
        )

    def drop_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.settings.event_store.connection.url})
        for future in admin.delete_topics([self.events, self.messages]).values():
            future.result()

    async def drop_slot(self) -> None:
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        await self.sql(f"{drop} WHERE slot_name = $1", self.slot, duty="mirror")


def headers_of(record: Message) -> dict[str, bytes]:
    pairs: Any = record.headers() or []
    return dict(pairs)


@asynccontextmanager
async def scratch_on(settings: Settings) -> AsyncIterator[Scratch]:
    owner = await asyncpg.connect(settings.event_store.canonical_connection.dsn("owner"))
    async with ConnectClient(settings.connect.url) as connect:
        one = Scratch(settings, connect)
        mirror = await connect.config("noetl-mirror")
        # Connect may see the database under another address than this test does.
        one.database_address = {key: mirror[key] for key in ("database.hostname", "database.port")}
        await owner.execute(f"CREATE DATABASE {one.database}")
        await one.sql(TABLE)
        await one.make_topics()
        yield one
        if one.name in await connect.names():
            await connect.stop(one.name)
            await connect.wait_until_stopped(one.name)
            await connect.delete(one.name)
        await one.drop_slot()
        await owner.execute(f"DROP DATABASE {one.database}")
        await asyncio.to_thread(one.drop_topics)
    await owner.close()


async def start(scratch: Scratch, **changes: str) -> None:
    await scratch.connect.apply(scratch.name, scratch.config(**changes))
    await scratch.connect.wait_until_running(scratch.name)


@pytest.fixture
async def scratch(settings: Settings) -> AsyncIterator[Scratch]:
    async with scratch_on(settings) as one:
        yield one


@pytest.fixture(scope="module")
async def running(settings: Settings) -> AsyncIterator[Scratch]:
    """A connector at work; each test that uses it has a root of its own."""
    async with scratch_on(settings) as one:
        await start(one)
        yield one


async def test_an_event_arrives_with_its_bytes_untouched_and_its_columns_as_headers(
    running: Scratch,
) -> None:
    envelope = await running.insert(7, 1, tenant=AWKWARD)
    (record,) = await running.read(running.events, 1, root_id=7)
    assert record.key() == b"7"
    assert record.value() == envelope
    headers = headers_of(record)
    assert int(headers.pop("position")) > 0
    assert base64.b64decode(headers.pop("chain")) == hashlib.sha256(envelope).digest()
    assert {name: value.decode() for name, value in headers.items()} == {
        "id": str(9_000_000_000_000_000_701),
        "seq": "1",
        "stream_version": "1",
        "event_type": "frame.committed",
        "tenant_id": AWKWARD,
        "organization_id": "o",
    }


async def test_a_records_time_is_when_the_log_took_the_event_in(running: Scratch) -> None:
    await running.insert(8, 1)
    (record,) = await running.read(running.events, 1, root_id=8)
    assert record.timestamp()[1] == int(AT.replace(tzinfo=UTC).timestamp() * 1000)


async def test_events_from_before_the_connector_come_first_and_in_order(scratch: Scratch) -> None:
    for seq in (1, 2, 3):
        for root_id in (5000, 7):
            await scratch.insert(root_id, seq)
    await start(scratch)
    await scratch.insert(7, 4)
    await scratch.insert(5000, 4)
    records = await scratch.read(scratch.events, 8)
    for root in (b"7", b"5000"):
        seqs = [headers_of(one)["seq"] for one in records if one.key() == root]
        assert seqs == [b"1", b"2", b"3", b"4"]


async def test_heartbeats_go_to_the_message_topic_while_the_log_is_idle(running: Scratch) -> None:
    records = await running.read(running.messages, 4)
    prefixes = {
        json.loads(one.value() or b"{}").get("message", {}).get("prefix") for one in records
    }
    assert f"{running.prefix}.heartbeat" in prefixes


async def test_without_slot_and_offsets_empty_topics_are_filled_again(scratch: Scratch) -> None:
    await start(scratch)
    sent = [await scratch.insert(7, seq) for seq in (1, 2, 3)]
    await scratch.read(scratch.events, 3)
    await scratch.connect.stop(scratch.name)
    await scratch.connect.wait_until_stopped(scratch.name)
    assert await scratch.connect.offsets(scratch.name)
    await scratch.connect.delete_offsets(scratch.name)
    assert not await scratch.connect.offsets(scratch.name)
    await scratch.drop_slot()
    await asyncio.to_thread(scratch.drop_topics)
    await scratch.make_topics()
    await scratch.connect.resume(scratch.name)
    await scratch.connect.wait_until_running(scratch.name)
    sent.append(await scratch.insert(7, 4))
    assert [one.value() for one in await scratch.read(scratch.events, 4)] == sent


async def test_applying_again_changes_nothing_and_a_change_is_applied(scratch: Scratch) -> None:
    await start(scratch)
    connect, name = scratch.connect, scratch.name
    assert await connect.apply(name, scratch.config()) == "unchanged"
    changed = scratch.config(**{"heartbeat.interval.ms": "2000"})
    assert await connect.apply(name, changed) == "changed"
    assert (await connect.wait_until_running(name)).running
    assert (await connect.config(name))["heartbeat.interval.ms"] == "2000"


async def test_a_restarted_connector_runs_and_goes_on(running: Scratch) -> None:
    first = await running.insert(9, 1)
    await running.connect.restart(running.name)
    await running.connect.wait_until_running(running.name)
    second = await running.insert(9, 2)
    assert [one.value() for one in await running.read(running.events, 2, root_id=9)] == [
        first,
        second,
    ]


async def test_connect_is_given_a_reference_and_never_the_password(running: Scratch) -> None:
    config = json.dumps(await running.connect.config(running.name))
    assert "${directory:" in config
    login = running.settings.event_store.canonical_connection.login("mirror")
    assert login.password.get_secret_value()
    assert login.password.get_secret_value() not in config


async def test_a_stopped_connector_stays_so_when_it_is_changed(scratch: Scratch) -> None:
    await start(scratch)
    connect, name = scratch.connect, scratch.name
    await connect.stop(name)
    await connect.wait_until_stopped(name)
    assert await connect.apply(name, scratch.config(**{"max.batch.size": "100"})) == "changed"
    assert (await connect.wait_until_settled(name)).state == "STOPPED"


async def test_an_invalid_field_is_named_with_connects_complaint(scratch: Scratch) -> None:
    with pytest.raises(BadConnector) as caught:
        await start(scratch, **{"slot.name": "Not A Slot"})
    assert set(caught.value.problems) == {"slot.name"}


async def test_an_unreachable_database_is_named(scratch: Scratch) -> None:
    with pytest.raises(BadConnector, match=r"database\.hostname: "):
        await start(scratch, **{"database.dbname": "no_such_database"})


async def test_a_task_that_fails_is_told_by_its_cause(scratch: Scratch) -> None:
    with pytest.raises(ConnectorFailed, match="task 0: ConnectException: Publication autocreation"):
        await start(scratch, **{"publication.name": "no_such_publication"})


async def test_the_offsets_of_a_running_connector_are_not_deleted(running: Scratch) -> None:
    with pytest.raises(ConnectRefused, match="STOPPED"):
        await running.connect.delete_offsets(running.name)


def test_the_status_command_tells_an_unknown_connector_in_one_line(settings: Settings) -> None:
    environment = {"STREAMS__CONNECT__URL": settings.connect.url}
    run = CliRunner().invoke(cli, ["connectors", "status", "no-such"], env=environment)
    assert isinstance(run.exception, ConnectorUnknown)
    assert "\n" not in str(run.exception)
