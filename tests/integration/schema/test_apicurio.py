"""Publishing pinned ids into a real Apicurio, and reading with Confluent's own client.

The registry is shared and outlives each test, so every test has ids, names and subjects of
its own.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import struct
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import fastavro
import pytest
from fastavro.utils import generate_one

from streams.resources import folder
from streams.schema.publish import CannotPublish, publish_to
from streams.schema.registry import FileRegistry
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.schema.release import release
from streams.schema.released import PinnedSchema, canonical, fingerprint, load_pins
from streams.settings import Settings

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class Log:
    """A log begun with pinned ids: its record's releases and its subjects."""

    pins: tuple[PinnedSchema, ...]
    subjects: dict[str, list[str]]

    @property
    def all_subjects(self) -> list[str]:
        return [subject for each in self.subjects.values() for subject in each]

    def only(self, count: int) -> Log:
        return Log(self.pins[:count], self.subjects)


def new_log(first_id: int | None = None) -> Log:
    name = f"E{uuid4().hex}"
    first = first_id or random.randrange(200_000, 1_000_000_000)
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    one = _pin(first, name, 1, fields)
    two = _pin(first + 1, name, 2, [*fields, {"name": "note", "type": "string", "default": ""}])
    return Log((one, two), {name: [f"noetl.events.{name}.{n}-value" for n in ("a", "b")]})


def _pin(schema_id: int, name: str, version: int, fields: Sequence[Any]) -> PinnedSchema:
    schema = json.dumps(
        {"type": "record", "name": name, "namespace": "noetl", "doc": "äöü", "fields": fields},
        indent=2,
    )
    file = f"released/{name}.{version}.avsc"
    return PinnedSchema(schema_id, name, version, file, fingerprint(schema), schema)


@pytest.fixture
async def client(registry_url: str) -> AsyncIterator[RegistryClient]:
    async with aiohttp.ClientSession() as session:
        yield RegistryClient(registry_url, session)


def core(url: str) -> str:
    return url.partition("/apis/")[0] + "/apis/registry/v2"


async def everything_in(client: RegistryClient) -> dict[str, bytes]:
    """The registry's own export: what must be equal when nothing was changed."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{core(client.url)}/admin/export") as response,
    ):
        with zipfile.ZipFile(io.BytesIO(await response.read())) as archive:
            names = [name for name in archive.namelist() if "Manifest" not in name]
            return {name: archive.read(name) for name in names}


async def test_publishing_gives_the_same_ids_under_every_subject(client: RegistryClient) -> None:
    log = new_log()
    done = await publish_to(client.url, log.pins, log.subjects)
    assert len(done.added) == 4
    for subject in log.all_subjects:
        versions = [await client.version(subject, n) for n in await client.versions(subject)]
        assert [(one.version, one.schema_id) for one in versions] == [
            (pin.version, pin.schema_id) for pin in log.pins
        ]
    for pin in log.pins:
        found = await client.schema(pin.schema_id)
        assert found is not None
        assert fingerprint(found) == pin.fingerprint


async def test_publishing_again_changes_nothing(client: RegistryClient) -> None:
    log = new_log()
    await publish_to(client.url, log.pins, log.subjects)
    before = await everything_in(client)
    done = await publish_to(client.url, log.pins, log.subjects)
    assert (len(done.added), len(done.present)) == (0, 4)
    assert await everything_in(client) == before


async def test_a_later_release_is_added_and_becomes_the_latest(client: RegistryClient) -> None:
    log = new_log()
    await publish_to(client.url, log.only(1).pins, log.subjects)
    done = await publish_to(client.url, log.pins, log.subjects)
    assert {one.version for one in done.added} == {2}
    for subject in log.all_subjects:
        latest = await client.call("GET", f"/subjects/{subject}/versions/latest")
        assert isinstance(latest, dict)
        assert latest["id"] == log.pins[1].schema_id


async def test_a_missing_earlier_release_does_not_become_the_latest(client: RegistryClient) -> None:
    log = new_log()
    await publish_to(client.url, log.pins[1:], log.subjects)
    await publish_to(client.url, log.pins, log.subjects)
    latest = await client.call("GET", f"/subjects/{log.all_subjects[0]}/versions/latest")
    assert isinstance(latest, dict)
    assert latest["version"] == 2


async def test_a_dry_run_changes_nothing(client: RegistryClient) -> None:
    log, before = new_log(), await everything_in(client)
    done = await publish_to(client.url, log.pins, log.subjects, dry_run=True)
    assert len(done.added) == 4
    assert await everything_in(client) == before


async def test_an_id_that_something_else_has_is_refused(client: RegistryClient) -> None:
    other = new_log().pins[0]
    taken = await client.register(f"{uuid4().hex}-value", schema=other.schema)
    log, before = new_log(first_id=taken), await everything_in(client)
    with pytest.raises(CannotPublish, match=f"id {taken} is taken") as refused:
        await publish_to(client.url, log.pins, log.subjects)
    assert "Nothing was changed" in str(refused.value)
    assert await everything_in(client) == before


async def test_an_id_that_only_a_deleted_schema_has_is_refused(client: RegistryClient) -> None:
    other, subject = new_log().pins[0], f"{uuid4().hex}-value"
    taken = await client.register(subject, schema=other.schema)
    await client.call("DELETE", f"/subjects/{subject}")
    log, before = new_log(first_id=taken), await everything_in(client)
    with pytest.raises(CannotPublish, match=f"id {taken} is taken"):
        await publish_to(client.url, log.pins, log.subjects)
    assert await everything_in(client) == before


async def test_a_schema_that_has_another_id_already_is_refused(client: RegistryClient) -> None:
    log = new_log()
    elsewhere = f"{uuid4().hex}-value"
    await client.register(elsewhere, schema=canonical(log.pins[0].schema))
    before = await everything_in(client)
    with pytest.raises(CannotPublish, match="under another id"):
        await publish_to(client.url, log.pins, log.subjects)
    assert await everything_in(client) == before


async def test_a_subject_that_others_use_is_refused(client: RegistryClient) -> None:
    log = new_log()
    await client.register(log.all_subjects[1], schema=new_log().pins[0].schema)
    before = await everything_in(client)
    with pytest.raises(CannotPublish, match=f"{log.all_subjects[1]} version 1 has id"):
        await publish_to(client.url, log.pins, log.subjects)
    assert await everything_in(client) == before


async def test_a_subject_with_a_deleted_version_is_refused(client: RegistryClient) -> None:
    log = new_log()
    await publish_to(client.url, log.pins, log.subjects)
    await client.call("DELETE", f"/subjects/{log.all_subjects[0]}/versions/2")
    before = await everything_in(client)
    with pytest.raises(CannotPublish, match="deleted version 2"):
        await publish_to(client.url, log.pins, log.subjects)
    assert await everything_in(client) == before


async def test_a_registry_that_counts_per_subject_is_refused(client: RegistryClient) -> None:
    log = new_log()
    setting = f"{core(client.url)}/admin/config/properties/registry.ccompat.legacy-id-mode.enabled"
    async with aiohttp.ClientSession() as session:
        (await session.put(setting, json={"value": "true"})).raise_for_status()
        try:
            with pytest.raises(CannotPublish, match="legacy-id-mode"):
                await publish_to(client.url, log.pins, log.subjects)
        finally:
            (await session.put(setting, json={"value": "false"})).raise_for_status()
    assert await client.schema(log.pins[0].schema_id) is None


async def test_after_publishing_the_registry_goes_on_with_the_same_ids(
    client: RegistryClient,
) -> None:
    """A deployment that then switches to `external` keeps encoding with the pinned id."""
    log = new_log()
    await publish_to(client.url, log.pins, log.subjects)
    registry = ExternalRegistry(client)
    assert await registry.id_for(log.all_subjects[0], log.pins[1].schema) == log.pins[1].schema_id
    fresh = await registry.id_for(f"{uuid4().hex}-value", new_log().pins[0].schema)
    assert fresh > log.pins[1].schema_id


async def test_confluents_deserializer_reads_bytes_made_with_our_file_ids(
    client: RegistryClient, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's imports, not ours
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroDeserializer
        from confluent_kafka.serialization import MessageField, SerializationContext

    schema = json.loads((folder("avro_schemas") / "Event.avsc").read_text("utf-8"))
    schema["doc"] = uuid4().hex  # a schema the shared registry has not seen
    (tmp_path / "Event.avsc").write_text(json.dumps(schema))
    release(tmp_path, "Event")
    (pin,) = load_pins(tmp_path)
    moved = PinnedSchema(
        random.randrange(200_000, 1_000_000_000), "Event", 1, pin.file, pin.fingerprint, pin.schema
    )
    ids = (tmp_path / "ids.yaml").read_text().replace(str(pin.schema_id), str(moved.schema_id))
    (tmp_path / "ids.yaml").write_text(ids)

    topic = f"noetl.events.{uuid4().hex}"
    schema_id = await FileRegistry(tmp_path).id_for(f"{topic}-value", json.dumps(schema))
    event = generate_one(schema)
    out = io.BytesIO(struct.pack(">BI", 0, schema_id))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, event)
    await publish_to(client.url, [moved], {"Event": [f"{topic}-value"]})

    with SchemaRegistryClient({"url": client.url}) as theirs:
        context = SerializationContext(topic, MessageField.VALUE)
        decoded = AvroDeserializer(theirs)(out.getvalue(), context)
    out.seek(5)
    assert decoded == fastavro.schemaless_reader(out, schema, None)
    assert set(decoded) == {field["name"] for field in schema["fields"]}


async def test_a_consumer_written_with_confluents_client_reads_our_topic(
    client: RegistryClient, settings: Settings, log: Any, new_event: Any
) -> None:
    """Appended with pinned ids, mirrored by Debezium, published, read by a stranger's program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's imports, not ours
        from confluent_kafka import DeserializingConsumer
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.avro import AvroDeserializer

    topic, root_id = "noetl.events.execution", log.ids.next()
    await publish_to(client.url, load_pins(folder("avro_schemas")), {"Event": [f"{topic}-value"]})
    sent = new_event(root_id, idempotency_key=uuid4().hex)
    (stored,) = (await log.store.append([sent])).events

    def read() -> Any:
        with SchemaRegistryClient({"url": client.url}) as theirs:
            consumer = DeserializingConsumer(
                {
                    "bootstrap.servers": settings.event_store.connection.url,
                    "group.id": uuid4().hex,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "value.deserializer": AvroDeserializer(theirs),
                }
            )
            consumer.subscribe([topic])
            try:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    message = consumer.poll(1.0)
                    if message is not None and message.key() == str(root_id).encode():
                        return message.value()
            finally:
                consumer.close()
        pytest.fail(f"no event of root {root_id} on {topic} within 60 s")

    event = await asyncio.to_thread(read)
    assert event["event_id"] == stored.event_id
    assert event["event_type"] == sent.type
    assert event["idempotency_key"] == sent.idempotency_key
    assert json.loads(event["meta"]) == sent.meta


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from streams.cli import main; main()", "schemas", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


async def test_the_command_publishes_refuses_and_says_so(
    client: RegistryClient, tmp_path: Path
) -> None:
    pin = new_log().pins[0]
    renamed = json.loads(pin.schema) | {"name": "Event", "doc": uuid4().hex}
    (tmp_path / "Event.avsc").write_text(json.dumps(renamed))
    made = release(tmp_path, "Event")
    prefix = f"{uuid4().hex}."
    options = ("--folder", str(tmp_path), "--url", client.url, "--subject-prefix", prefix)
    ids = tmp_path / "ids.yaml"
    ids.write_text(ids.read_text().replace(str(made.schema_id), str(pin.schema_id)))

    done = run("publish", *options, "--json")
    assert done.returncode == 0, done.stderr
    added = json.loads(done.stdout)["added"]
    assert f"{prefix}noetl.events.execution-value" in {one["subject"] for one in added}
    assert {one["id"] for one in added} == {pin.schema_id}
    assert json.loads(run("publish", *options, "--json").stdout)["added"] == []

    ids.write_text(ids.read_text().replace(str(pin.schema_id), str(pin.schema_id + 5)))
    refused = run("publish", *options)
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: schema registry")
    assert refused.stderr.count("\n") == 1
