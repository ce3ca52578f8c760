"""The envelope's bytes: what goes in comes out, and what is not ours is refused by name."""

from __future__ import annotations

import io
from dataclasses import asdict, replace
from typing import Any

import fastavro
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import PoisonRecord
from streams.events.codec import Codec, event_schema, schema_id_of
from streams.events.errors import UndecodableEvent
from streams.events.model import NewEvent, Root
from streams.resources import folder
from streams.schema.registry import FileRegistry, MemoryRegistry, UnknownSchemaId
from tests.histories.envelopes import event_of, recorded
from tests.support.events.examples import ASSIGNED, codec, example, sealed
from tests.support.events.strategies import new_events

pytestmark = pytest.mark.usefixtures("either_sealer")

RECORDED = recorded()
HEADER = b"\x00" + (100001).to_bytes(4)
NOT_IN_EVENT = {"schema_version", "expected_version", "correlation_id"}
CODEC = codec()
_READER = fastavro.parse_schema(orjson.loads(event_schema()))


@given(new_events())
def test_decoding_is_the_inverse_of_encoding(event: NewEvent) -> None:
    one = sealed(event)
    assert CODEC.record(one.envelope) == one.record
    assert CODEC.encode(CODEC.record(one.envelope)) == one.envelope
    decoded = CODEC.decode(one.envelope, ASSIGNED)
    for name in set(asdict(event)) - NOT_IN_EVENT:
        assert getattr(decoded, name) == getattr(event, name), name
    assert decoded.correlation_id == (event.correlation_id or str(event.root.id))
    assert decoded.ingest_time == ASSIGNED.ingest_time
    assert CODEC.verify(one.envelope)


@given(new_events())
def test_any_avro_reader_with_our_schema_understands_the_bytes(event: NewEvent) -> None:
    one = sealed(event)
    body = io.BytesIO(one.envelope[len(HEADER) :])
    found: Any = fastavro.schemaless_reader(body, _READER, None)
    assert found["event_time"] == event.event_time
    assert found["idempotency_key"] == event.idempotency_key
    assert body.read() == b""


@pytest.mark.parametrize("name", RECORDED)
async def test_recorded_bytes_still_decode_to_what_was_asked(name: str) -> None:
    known = RECORDED[name]
    envelope = bytes.fromhex(known["envelope"])
    pinned = await Codec.open(FileRegistry(folder("avro_schemas")))
    await pinned.learn(envelope)
    event, asked = pinned.decode(envelope, ASSIGNED), event_of(known["event"])
    assert pinned.verify(envelope)
    assert event.checksum == known["checksum"]
    assert (event.type, event.root, event.meta) == (asked.type, asked.root, asked.meta)
    assert (event.context, event.result) == (asked.context, asked.result)
    assert event.payload_ref == asked.payload_ref


async def test_our_schema_has_the_id_that_is_in_stored_bytes() -> None:
    pinned = await Codec.open(FileRegistry(folder("avro_schemas")))
    assert pinned.schema_id == 100001
    assert {bytes.fromhex(known["envelope"])[:5] for known in RECORDED.values()} == {HEADER}


@given(new_events(), st.data())
def test_verify_notices_a_flipped_bit(event: NewEvent, data: st.DataObject) -> None:
    one = sealed(event)
    envelope = bytearray(one.envelope)
    at = data.draw(st.integers(0, len(envelope) - 1))
    envelope[at] ^= 1 << data.draw(st.integers(0, 7))
    _check_noticed(bytes(envelope), one.record)


def test_bits_beyond_64_of_a_long_number_say_nothing() -> None:
    one = sealed(replace(example("frame.committed"), root=Root("execution", 2**62)))
    number = b"\x80" * 9 + b"\x01"
    assert number in one.envelope
    _check_noticed(one.envelope.replace(number, b"\x80" * 9 + b"\x03"), one.record)


def _check_noticed(envelope: bytes, record: object) -> None:
    """Avro has bits that no number is made of: with them, it is the same event all the same."""
    assert not _verified(envelope) or CODEC.record(envelope) == record


def test_verify_notices_each_changed_byte_of_an_envelope() -> None:
    envelope = sealed(example("frame.committed")).envelope
    for at in range(len(envelope)):
        for change in (0x01, 0x20, 0x80, 0xFF):
            changed = bytearray(envelope)
            changed[at] ^= change
            assert not _verified(bytes(changed)), (at, change)


def _verified(envelope: bytes) -> bool:
    try:
        return CODEC.verify(envelope)
    except (UndecodableEvent, UnknownSchemaId):
        return False


@given(st.binary(max_size=600))
def test_random_bytes_are_undecodable_and_nothing_worse(body: bytes) -> None:
    _is_undecodable(HEADER + body)


@given(new_events(), st.data())
def test_bytes_spoilt_on_the_way_are_decoded_or_refused_and_nothing_worse(
    event: NewEvent, data: st.DataObject
) -> None:
    envelope = bytearray(sealed(event).envelope)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(len(HEADER), len(envelope) - 1))
        envelope[at] = data.draw(st.integers(0, 255))
    try:
        CODEC.decode(bytes(envelope), ASSIGNED)
        CODEC.verify(bytes(envelope))
    except UndecodableEvent:
        pass


@given(new_events(), st.data())
def test_bytes_cut_short_are_undecodable(event: NewEvent, data: st.DataObject) -> None:
    envelope = sealed(event).envelope
    _is_undecodable(envelope[: data.draw(st.integers(0, len(envelope) - 1))])


@given(st.binary(min_size=1, max_size=20))
def test_bytes_that_follow_an_envelope_make_it_undecodable(rest: bytes) -> None:
    _is_undecodable(sealed(example("loop.done")).envelope + rest)


@pytest.mark.parametrize(
    "changes",
    [
        {"meta": "[1]"},
        {"meta": "{"},
        {"meta": "null"},
        {"context": "not json"},
        {"current_item": "\x00"},
        {"event_time": 2**62},
        {"event_time": -(2**62)},
    ],
)
def test_fields_that_no_writer_of_ours_makes_are_undecodable(changes: dict[str, Any]) -> None:
    record = {**sealed(example("loop.item")).record, **changes}
    with pytest.raises(UndecodableEvent):
        CODEC.decode(CODEC.encode(record), ASSIGNED)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x01", b"\x01\x00\x00\x00\x01xyz"])
def test_bytes_without_the_wire_format_are_poison(data: bytes) -> None:
    with pytest.raises(UndecodableEvent, match="Confluent wire format"):
        schema_id_of(data)
    assert issubclass(UndecodableEvent, PoisonRecord)


async def test_a_schema_id_that_nobody_knows_stops_the_reader() -> None:
    stranger = b"\x00" + (77).to_bytes(4) + b"x"
    with pytest.raises(UnknownSchemaId, match="77"):
        CODEC.record(stranger)
    with pytest.raises(UnknownSchemaId, match="77"):
        await CODEC.learn(stranger)


async def test_bytes_of_another_writer_are_read_through_its_own_schema() -> None:
    """A later version may add a field with a default; today's reader does without it."""
    registry = MemoryRegistry()
    later = orjson.loads(event_schema())
    later["fields"].append({"name": "added", "type": ["null", "string"], "default": None})
    text = orjson.dumps(later).decode()
    later_id = await registry.id_for("noetl.events.execution-value", text)
    record = {**sealed(example("loop.done")).record, "added": "something"}
    data = Codec(later_id, text, registry).encode(record)

    ours = await Codec.open(registry)
    assert ours.schema_id != later_id
    await ours.learn(data)
    assert ours.decode(data, ASSIGNED) == CODEC.decode(
        sealed(example("loop.done")).envelope, ASSIGNED
    )


def _is_undecodable(data: bytes) -> None:
    with pytest.raises(UndecodableEvent):
        CODEC.decode(data, ASSIGNED)
    with pytest.raises(UndecodableEvent):
        CODEC.verify(data)
