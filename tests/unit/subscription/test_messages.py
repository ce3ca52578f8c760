"""From a record to a workload: bodies, headers, directives."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import orjson
import pytest

from streams.events.model import Json
from streams.kafka.feed.port import Record, TopicPartition
from streams.schema.registry import MemoryRegistry
from streams.subscription.bodies import BodyReader
from streams.subscription.directives import UnusableMessage
from streams.subscription.interpret import Interpreted, MessageReader
from streams.subscription.message import batch_workload_of, workload_of
from streams.subscription.model import (
    BodyFormat,
    Control,
    Directive,
    DispatchRule,
    HeaderRules,
    KafkaTopicSource,
    PayloadFrom,
    Subscription,
)

ORDERS = Subscription(
    name="orders",
    path="shop/orders",
    dispatch=DispatchRule(playbook="shop/order"),
    kafka=KafkaTopicSource(topic="orders", group="g"),
)


def record(value: bytes | None, key: bytes | None = b"k", **headers: bytes | None) -> Record:
    named: Any = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return Record(TopicPartition("orders", 2), 7, key, value, named, 1000)


async def read(
    value: bytes | None, subscription: Subscription = ORDERS, registry: Any = None, **more: Any
) -> Interpreted:
    reader = MessageReader(subscription, BodyReader(registry or MemoryRegistry()))
    return await reader.record(record(value, **more))


async def workload(
    value: bytes | None, subscription: Subscription = ORDERS, **more: Any
) -> dict[str, Json]:
    found = await read(value, subscription, **more)
    return workload_of(subscription, found.message, found.values)


def using(payload_from: PayloadFrom) -> Subscription:
    return replace(ORDERS, dispatch=replace(ORDERS.dispatch, payload_from=payload_from))


def directed(*directives: Directive, **more: Any) -> Subscription:
    return replace(ORDERS, headers=HeaderRules(directives=directives), **more)


async def test_the_keys_of_an_object_are_at_the_top() -> None:
    body = {"n": 1, "message": "mine", "source": "mine", "subscription": "mine"}
    assert await workload(orjson.dumps(body), X_A=b"1") == {
        "n": 1,
        "message": {
            "id": "orders:2:7",
            "data": body,
            "headers": {"x-a": "1"},
            "attributes": {"X-A": "1"},
            "metadata": {
                "topic": "orders",
                "partition": 2,
                "offset": 7,
                "key": "k",
                "timestamp_ms": 1000,
            },
        },
        "subscription": "shop/orders",
        "source": "kafka",
    }


async def test_a_body_that_is_no_object_is_called_body() -> None:
    assert (await workload(b"[1, 2]"))["body"] == [1, 2]
    assert (await workload(b'"1e5"'))["body"] == "1e5"


async def test_a_body_as_text_is_not_parsed() -> None:
    assert (await workload(b'{"n": 1}', using(PayloadFrom.BODY)))["body"] == '{"n":1}'
    assert (await workload(b"not json", using(PayloadFrom.BODY)))["body"] == "not json"


async def test_attributes_are_the_headers() -> None:
    made = await workload(b"{", using(PayloadFrom.ATTRIBUTES), Device=b"d1")
    assert made["Device"] == "d1"
    message: Any = made["message"]
    assert message["data"] == "{"


async def test_a_tombstone_has_no_body_and_says_so() -> None:
    made: Any = await workload(None)
    assert made["body"] is None
    assert made["message"]["data"] is None
    assert made["message"]["metadata"]["tombstone"] is True


async def test_a_record_without_a_key_has_a_null_key() -> None:
    made: Any = await workload(b"{}", key=None)
    assert made["message"]["metadata"]["key"] is None


async def test_a_key_that_is_not_text_is_base64() -> None:
    made: Any = await workload(b"{}", key=b"\xff")
    assert made["message"]["metadata"]["key"] == {"base64": "/w=="}


async def test_a_header_without_a_value_is_null_and_directs_nothing() -> None:
    directive = Directive(header="route", controls=Control.PLAYBOOK, allowed=("a",))
    found = await read(b"{}", directed(directive), route=None)
    assert found.message.headers == {"route": None}
    assert found.playbook(ORDERS) == "shop/order"


async def test_an_empty_body_and_one_that_is_not_json_are_unusable() -> None:
    for value in (b"", b"{", b"NaN"):
        with pytest.raises(UnusableMessage, match="the body is not JSON"):
            await read(value)


async def test_bytes_that_are_not_text_are_base64() -> None:
    made: Any = await workload(b"\xff\xfe", using(PayloadFrom.BODY))
    assert made["body"] == "//4="
    assert made["message"]["metadata"]["encoding"] == "base64"


async def test_of_several_headers_with_one_name_the_last_wins() -> None:
    directive = Directive(header="route", controls=Control.PLAYBOOK, allowed=("a", "b"))
    twice: Any = (("Route", b"a"), ("ROUTE", b"b"))
    reader = MessageReader(directed(directive), BodyReader(MemoryRegistry()))
    found = await reader.record(Record(TopicPartition("orders", 0), 0, None, b"{}", twice, 0))
    assert found.playbook(ORDERS) == "b"


async def test_a_value_that_is_not_allowed_or_not_in_the_map_is_unusable() -> None:
    route = Directive(header="route", controls=Control.PLAYBOOK, allowed=("a",))
    with pytest.raises(UnusableMessage, match=r"header route: 'x' is not allowed .* are a"):
        await read(b"{}", directed(route), route=b"x")
    mapped = Directive(header="pool", controls=Control.POOL, allowed=("big",), map={"b": "big"})
    assert (await read(b"{}", directed(mapped), pool=b"b")).pool(ORDERS) == "big"
    with pytest.raises(UnusableMessage, match="is not in the map"):
        await read(b"{}", directed(mapped), pool=b"big")
    with pytest.raises(UnusableMessage, match="is not UTF-8 text"):
        await read(b"{}", directed(route), route=b"\xff")


async def test_directives_reach_the_workload_over_the_body() -> None:
    subscription = directed(
        Directive(header="k", controls=Control.KEY),
        Directive(header="content-type", controls=Control.CONTENT_TYPE),
        Directive(header="p", controls=Control.PRIORITY, map={"high": 1}),
        Directive(header="schema", controls=Control.SCHEMA_HINT),
        dedup_s=60,
    )
    found = await read(
        b'{"idempotency_key": "mine"}',
        subscription,
        k=b"order-1", content_type=b"application/json", p=b"high", schema=b"v3",
    )  # fmt: skip
    made = workload_of(subscription, found.message, found.values)
    assert found.key == "order-1"
    assert {name: made[name] for name in ("idempotency_key", "content_type", "priority")} == {
        "idempotency_key": "order-1",
        "content_type": "application/json",
        "priority": 1,
    }
    assert made["schema_hint"] == "v3"


async def test_without_a_directive_the_key_of_dedup_is_the_message_id() -> None:
    assert (await read(b"{}", replace(ORDERS, dedup_s=60))).key == "orders:2:7"
    assert (await read(b"{}")).key is None


async def test_a_content_type_decides_how_the_body_is_read() -> None:
    subscription = directed(Directive(header="content-type", controls=Control.CONTENT_TYPE))
    assert (await read(b"1", subscription, content_type=b"text/plain; a=b")).message.data == "1"
    found = await read(b"1", subscription, content_type=b"application/octet-stream")
    assert (found.message.data, found.message.metadata["encoding"]) == ("MQ==", "base64")
    with pytest.raises(UnusableMessage, match="not Avro"):
        await read(b"1", subscription, content_type=b"avro/binary")


SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": "long"},
        {"name": "raw", "type": "bytes"},
        {"name": "ratio", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "note", "type": ["null", "string"]},
    ],
}
ORDER = {
    "id": UUID(int=5),
    "n": 2**40,
    "raw": b"\xff",
    "ratio": float("nan"),
    "at": datetime(2026, 5, 16, tzinfo=UTC),
    "price": Decimal("12.50"),
    "note": None,
}


def avro(schema_id: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), ORDER)
    return b"\x00" + schema_id.to_bytes(4, "big") + out.getvalue()


async def test_avro_is_known_by_its_first_byte_and_becomes_json() -> None:
    registry = MemoryRegistry()
    schema_id = await registry.id_for("orders-value", orjson.dumps(SCHEMA).decode())
    made = await workload(avro(schema_id), registry=registry)
    assert {name: made[name] for name in ORDER} == {
        "id": str(UUID(int=5)),
        "n": 2**40,
        "raw": "/w==",
        "ratio": "NaN",
        "at": "2026-05-16T00:00:00+00:00",
        "price": "12.50",
        "note": None,
    }


async def test_avro_that_cannot_be_read_is_unusable_with_its_reason() -> None:
    registry = MemoryRegistry()
    schema_id = await registry.id_for("orders-value", orjson.dumps(SCHEMA).decode())
    for value, why in [
        (avro(99), "schema id 99 is not in"),
        (avro(schema_id)[:-3], f"not Avro of schema {schema_id}"),
        (avro(schema_id) + b"xx", "2 bytes follow"),
        (b"\x00\x01", "not Avro in Confluent's format"),
    ]:
        with pytest.raises(UnusableMessage, match=why):
            await read(value, registry=registry)
    kafka = replace(ORDERS.kafka or KafkaTopicSource(topic="", group=""), format=BodyFormat.AVRO)
    with pytest.raises(UnusableMessage, match="not Avro in Confluent's format"):
        await read(b"{}", replace(ORDERS, kafka=kafka))


async def test_a_trace_and_allowed_baggage_are_handed_on() -> None:
    rules = HeaderRules(propagates_trace=True, baggage=("tenant",), is_passed_through=False)
    parent = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
    found = await read(
        b"{}", replace(ORDERS, headers=rules), traceparent=parent, baggage=b"tenant=acme;p=1,x=y"
    )
    assert found.trace == parent.decode()
    assert found.message.metadata["baggage"] == {"tenant": "acme"}
    assert (found.message.headers, found.message.attributes) == ({}, {})
    assert (await read(b"{}", replace(ORDERS, headers=rules), traceparent=b"x")).trace is None


async def test_a_batch_is_a_list_of_messages() -> None:
    found = [await read(b"{}"), await read(b"1")]
    made: Any = batch_workload_of(ORDERS, [one.message for one in found])
    assert [one["data"] for one in made["messages"]] == [{}, 1]
    assert (made["subscription"], made["source"]) == ("shop/orders", "kafka")
