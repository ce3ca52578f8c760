"""Trigger records in Avro are read as their JSON would be."""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
import orjson
import pytest

from streams.resources import folder
from streams.schema.registry import FileRegistry, MemoryRegistry
from streams.trigger.avro import TriggerReader, trigger_schema

NOTHING = dict.fromkeys(
    ["version", "workload", "key", "tenant", "organization", "reply_to", "correlation_id"]
)


def encoded(schema_id: int, record: dict[str, Any], schema: str = "") -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(
        body, fastavro.parse_schema(orjson.loads(schema or trigger_schema())), record
    )
    return struct.pack(">BI", 0, schema_id) + body.getvalue()


@pytest.fixture
async def known() -> tuple[TriggerReader, int]:
    registry = MemoryRegistry()
    return TriggerReader(registry), await registry.id_for("triggers-value", trigger_schema())


async def test_avro_and_json_say_the_same(known: tuple[TriggerReader, int]) -> None:
    reader, schema_id = known
    asked = {"path": "examples/hello", "version": 3, "key": "k", "workload": {"n": ["1e5", None]}}
    record = {**asked, "workload": orjson.dumps(asked["workload"]).decode()}
    from_avro = await reader.fields(encoded(schema_id, record))
    from_json = await reader.fields(orjson.dumps(asked))
    assert from_avro == {**NOTHING, **from_json}


async def test_the_released_schema_is_the_one_we_read() -> None:
    registry = FileRegistry(folder("avro_schemas"))
    schema_id = await registry.id_for("noetl.triggers-value", trigger_schema())
    found = await TriggerReader(registry).fields(encoded(schema_id, {"path": "p"}))
    assert found == {**NOTHING, "path": "p"}


async def test_a_writer_that_knows_fewer_and_other_fields_is_understood() -> None:
    registry = MemoryRegistry()
    theirs = orjson.dumps(
        {
            "type": "record",
            "name": "Trigger",
            "namespace": "noetl",
            "fields": [{"name": "colour", "type": "string"}, {"name": "path", "type": "string"}],
        }
    ).decode()
    schema_id = await registry.id_for("triggers-value", theirs)
    value = encoded(schema_id, {"path": "p", "colour": "red"}, theirs)
    assert await TriggerReader(registry).fields(value) == {**NOTHING, "path": "p"}


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda value: value[:3], "wire format"),
        (lambda value: b"\0\0\0\0\x63" + value[5:], "schema 99"),
        (lambda value: value[:-3], "not a Trigger"),
        (lambda value: value + b"x", "1 bytes follow"),
        (lambda value: value[:5] + b"\xff" * 40, "not a Trigger"),
    ],
)
async def test_bytes_that_are_no_trigger_say_why(
    known: tuple[TriggerReader, int], damage: Any, says: str
) -> None:
    reader, schema_id = known
    with pytest.raises(ValueError, match=says):
        await reader.fields(damage(encoded(schema_id, {"path": "examples/hello"})))


async def test_a_workload_that_is_no_json_says_so(known: tuple[TriggerReader, int]) -> None:
    reader, schema_id = known
    with pytest.raises(ValueError, match="workload: its text is not JSON"):
        await reader.fields(encoded(schema_id, {"path": "p", "workload": "{"}))


async def test_another_record_under_a_known_id_is_no_trigger() -> None:
    registry = MemoryRegistry()
    schema = orjson.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": "path", "type": "long"}]}
    ).decode()
    schema_id = await registry.id_for("orders-value", schema)
    with pytest.raises(ValueError, match="not a Trigger"):
        await TriggerReader(registry).fields(encoded(schema_id, {"path": 5}, schema))
