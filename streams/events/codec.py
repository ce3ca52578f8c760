"""The envelope codec: Avro with Confluent's five-byte header."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import fastavro
import orjson
from fastavro.types import Schema

from streams.events.avro_writer import compile_record
from streams.events.canonical import canonical_fields, checksum, from_millis
from streams.events.errors import UndecodableEvent
from streams.events.model import Assigned, Event, IpcHint, Json, PayloadRef, Routing
from streams.events.native import native, understands
from streams.events.reading import freeze, unfrozen
from streams.events.stored import StoredRow, root_of, row_reader
from streams.resources import folder
from streams.schema.registry import SchemaRegistry, UnknownSchemaId

_HEADER = struct.Struct(">BI")
_NOT_AVRO = (EOFError, ValueError, IndexError, OverflowError, StopIteration, struct.error)
_Draft = unfrozen(Event)


def event_schema() -> str:
    """Return the Avro schema of `noetl.Event` as this program writes it."""
    return (folder("avro_schemas") / "Event.avsc").read_text("utf-8")


class Codec:
    """Encodes with one schema; decodes any schema of the registry."""

    def __init__(
        self, schema_id: int, schema: str, registry: SchemaRegistry, *, natively: bool = True
    ) -> None:
        """`natively` allows the native module, if it is installed."""
        module = native() if natively else None
        if module is not None and not understands(module, schema):
            module = None
        self._read = None if module is None else module.record
        self._match = None if module is None else module.match_checksums
        self.schema_id = schema_id
        self._registry = registry
        self.schema = schema
        self.header = _HEADER.pack(0, schema_id)
        self._events = None if module is None else row_reader(module, self.header)
        self._reader = _parse(schema)
        self._write = compile_record(orjson.loads(schema))
        self._writers = {schema_id: self._reader}

    @classmethod
    async def open(cls, registry: SchemaRegistry) -> Codec:
        """Look up the id of the current schema in the registry."""
        schema = event_schema()
        schema_id = await registry.id_for("noetl.events.execution-value", schema)
        return cls(schema_id, schema, registry)

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """Return the wire bytes of an envelope."""
        return self.header + self._write(record)

    async def learn(self, data: bytes) -> None:
        """Fetch the schema `data` was written with, unless it is cached."""
        schema_id = schema_id_of(data)
        if schema_id not in self._writers:
            self._writers[schema_id] = _parse(await self._registry.schema(schema_id))

    def record(self, data: bytes) -> dict[str, Any]:
        """Return the envelope in `data` as an Avro record (times in milliseconds).

        Raises:
            UndecodableEvent: the bytes are not an event.
            UnknownSchemaId: `learn` was not called first.
        """
        schema_id = schema_id_of(data)
        writer = self._writers.get(schema_id)
        if writer is None:
            raise UnknownSchemaId(schema_id, "this process's cache")
        if writer is self._reader and self._read is not None:
            # What it rejects is decoded again below, for the error.
            with suppress(ValueError):
                return self._read(data)
        reader = None if writer is self._reader else self._reader
        body = io.BytesIO(data)
        body.seek(_HEADER.size)
        try:
            found = fastavro.schemaless_reader(body, writer, reader)
        except _NOT_AVRO as error:
            raise UndecodableEvent(
                f"Avro of schema {schema_id} does not decode: {error}"
            ) from error
        if (rest := len(data) - body.tell()) > 0:
            raise UndecodableEvent(f"{rest} bytes follow the Avro of schema {schema_id}")
        return cast(dict[str, Any], found)

    def decode(self, data: bytes, assigned: Assigned) -> Event:
        """Decode an envelope and add the fields that the database assigned.

        Raises:
            UndecodableEvent, UnknownSchemaId: as for `record`.
        """
        record = self.record(data)
        try:
            return event_of(record, assigned)
        except (ValueError, OverflowError) as error:
            raise UndecodableEvent(f"a field of the envelope does not decode: {error}") from error

    def stored_events(self, rows: Sequence[StoredRow]) -> list[Event | None]:
        """Return the event of each row whose envelope plainly is one and has the row's checksum.

        None: `decode` the envelope, which raises what is wrong with it. Whether the checksum is
        that of the content is not judged: see `surely_match`.
        """
        return [None] * len(rows) if self._events is None else self._events(list(rows))

    def surely_match(self, envelopes: Sequence[bytes]) -> list[bool]:
        """Return for each envelope whether it surely matches its checksum; ask `verify` if not.

        Fast, and other threads run meanwhile, if the native module is installed.
        """
        if self._match is None:
            return [False] * len(envelopes)
        found = self._match(envelopes)
        return [
            is_match and one.startswith(self.header)
            for one, is_match in zip(envelopes, found, strict=True)
        ]

    def verify(self, data: bytes) -> bool:
        """Return whether the envelope matches its checksum.

        Raises:
            UndecodableEvent, UnknownSchemaId: as for `record`.
        """
        record = self.record(data)
        try:
            return bool(checksum(canonical_fields(record)) == record["checksum"])
        except (ValueError, OverflowError) as error:
            raise UndecodableEvent(f"a field of the envelope does not decode: {error}") from error


def schema_id_of(data: bytes) -> int:
    """Return the schema id in the header of `data`."""
    if len(data) < _HEADER.size or data[0] != 0:
        raise UndecodableEvent("no Confluent wire format: expected a zero byte and a schema id")
    return int(_HEADER.unpack_from(data)[1])


def event_of(record: Mapping[str, Any], assigned: Assigned) -> Event:
    """Return the event of a decoded envelope."""
    new = _Draft()
    new.event_id = record["event_id"]
    new.root = root_of(record["root_type"], record["root_id"])
    new.stream_id = record["stream_id"]
    new.tenant_id = record["tenant_id"]
    new.organization_id = record["organization_id"]
    new.aggregate_type = record["aggregate_type"]
    new.aggregate_id = record["aggregate_id"]
    new.type = record["event_type"]
    new.schema_name = record["schema_name"]
    new.schema_version = record["schema_version"]
    new.event_time = from_millis(record["event_time"])
    new.producer = record["producer"]
    new.correlation_id = record["correlation_id"]
    new.idempotency_key = record["idempotency_key"]
    new.checksum = record["checksum"]
    new.causation_id = record["causation_id"]
    new.parent_execution_id = record["parent_execution_id"]
    new.catalog_id = record["catalog_id"]
    new.node_name = record["node_name"]
    new.node_type = record["node_type"]
    new.status = record["status"]
    new.error = record["error"]
    new.current_index = record["current_index"]
    new.current_item = _loads(record["current_item"])
    new.meta = _routing(record["meta"])
    new.context = _loads(record["context"])
    new.result = _loads(record["result"])
    new.payload_ref = _reference(record["payload_ref"])
    new.trace = record["trace"]
    new.seq = assigned.seq
    new.position = assigned.position
    new.stream_version = assigned.stream_version
    new.ingest_time = assigned.ingest_time
    new.chain = assigned.chain
    return freeze(new, Event)


def _routing(text: str) -> dict[str, Routing]:
    meta = orjson.loads(text)
    if not isinstance(meta, dict):
        raise ValueError("meta is not a JSON object")
    return meta


def _loads(text: str | None) -> Json:
    value: Json = None if text is None else orjson.loads(text)
    return value


def _reference(fields: Mapping[str, Any] | None) -> PayloadRef | None:
    if fields is None:
        return None
    hint = fields["ipc"]
    if hint is not None:
        hint = IpcHint(**{**hint, "valid_until": from_millis(hint["valid_until"])})
    return PayloadRef(**{**fields, "ipc": hint})


def _parse(schema: str) -> Schema:
    """Parse a schema without logical types, so that times stay numbers."""
    return fastavro.parse_schema(_without_logical_types(orjson.loads(schema)))


def _without_logical_types(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _without_logical_types(v) for k, v in node.items() if k != "logicalType"}
    if isinstance(node, list):
        return [_without_logical_types(item) for item in node]
    return node
