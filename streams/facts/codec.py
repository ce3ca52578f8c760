"""Facts as Avro records, in Confluent's wire format. The same fact always gives the same bytes."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

import fastavro
import orjson
from blake3 import blake3
from fastavro.types import Schema

from streams.errors import PoisonRecord
from streams.events.avro_writer import compile_record
from streams.events.canonical import EPOCH, millis
from streams.facts.model import KINDS, TOPICS, Fact, fact_topic
from streams.resources import folder
from streams.schema.registry import SchemaRegistry

_HEADER = struct.Struct(">BI")
_NOT_AVRO = (EOFError, ValueError, IndexError, OverflowError, StopIteration, struct.error)
AvroValue: TypeAlias = int | str | None


class UnreadableFact(PoisonRecord):
    """A record of a fact topic is not a fact, or is damaged."""

    def __init__(self, topic: str, why: str) -> None:
        super().__init__(f"{topic}: a record is not readable: {why}; run `streams rebuild facts`")


@dataclass(frozen=True, slots=True)
class _Schema:
    header: bytes
    write: Callable[[Mapping[str, AvroValue]], bytes]
    reader: Schema


class FactCodec:
    """Encodes with this program's schemas; decodes those of the registry that it has learned."""

    def __init__(self, registry: SchemaRegistry, schemas: Mapping[type[Fact], _Schema]) -> None:
        self._registry, self._schemas = registry, schemas
        self._writers: dict[int, Schema] = {}

    @classmethod
    async def open(cls, registry: SchemaRegistry) -> FactCodec:
        """Look up the ids of the current schemas, under the subjects of their topics."""
        schemas = {}
        for kind in KINDS:
            text = fact_schema(kind)
            number = await registry.id_for(f"{fact_topic(kind)}-value", text)
            read = orjson.loads(text)
            schemas[kind] = _Schema(
                _HEADER.pack(0, number), compile_record(read), fastavro.parse_schema(read)
            )
        return cls(registry, schemas)

    def encode(self, fact: Fact) -> bytes:
        """Return the bytes of a record's value."""
        schema, record = self._schemas[type(fact)], avro_record(fact)
        return schema.header + schema.write({**record, "checksum": checksum(record)})

    async def decode(self, topic: str, data: bytes) -> Fact:
        """Return the fact of a record's value.

        Raises:
            UnreadableFact: it is none of this topic, or its checksum is another.
            UnknownSchemaId: the registry does not have its schema.
        """
        kind = TOPICS[topic]
        if len(data) < _HEADER.size or data[0] != 0:
            raise UnreadableFact(topic, "no Confluent wire format")
        writer = await self._writer(int(_HEADER.unpack_from(data)[1]))
        body = io.BytesIO(data)
        body.seek(_HEADER.size)
        try:
            found = fastavro.schemaless_reader(body, writer, self._schemas[kind].reader)
            assert isinstance(found, dict)
            expected = found.pop("checksum")
            fact: Fact = kind(**found)
        except _NOT_AVRO as error:
            raise UnreadableFact(topic, repr(error)) from error
        if checksum(avro_record(fact)) != expected:
            raise UnreadableFact(topic, f"{fact.key} does not match its checksum")
        return fact

    async def _writer(self, number: int) -> Schema:
        if number not in self._writers:
            text = await self._registry.schema(number)
            self._writers[number] = fastavro.parse_schema(orjson.loads(text))
        return self._writers[number]


def fact_schema(kind: type[Fact]) -> str:
    """Return the Avro schema of a kind of facts, as this program writes it."""
    return (folder("avro_schemas") / f"{kind.__name__}.avsc").read_text("utf-8")


def avro_record(fact: Fact) -> dict[str, AvroValue]:
    """Return a fact's fields as Avro stores them: times in milliseconds, days as numbers."""
    return {field.name: _stored(getattr(fact, field.name)) for field in fields(fact)}


def checksum(record: Mapping[str, AvroValue]) -> str:
    """Return the digest of a record without its checksum."""
    return blake3(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _stored(value: datetime | date | AvroValue) -> AvroValue:
    if isinstance(value, datetime):
        return millis(value)
    if isinstance(value, date):
        return (datetime.combine(value, time(), UTC) - EPOCH) // timedelta(days=1)
    return value
