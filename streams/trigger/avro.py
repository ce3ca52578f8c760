"""Trigger records in Avro: Confluent's five-byte header, then the record `noetl.Trigger`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, cast

import fastavro
import orjson
from cachetools import LRUCache
from fastavro.types import Schema

from streams.events.codec import schema_id_of
from streams.events.errors import UndecodableEvent
from streams.events.model import Json
from streams.resources import folder
from streams.schema.registry import SchemaRegistry, UnknownSchemaId
from streams.trigger.record import read_json

MAGIC = b"\x00"
HEADER_BYTES = 5
_MOST_SCHEMAS = 256


def trigger_schema() -> str:
    """Return the Avro schema of `noetl.Trigger` as this program reads it."""
    return (folder("avro_schemas") / "Trigger.avsc").read_text("utf-8")


class TriggerReader:
    """Reads JSON and Avro: Avro values begin with a zero byte, JSON never does."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._reader = _parsed(trigger_schema())
        self._writers: LRUCache[int, Schema] = LRUCache(_MOST_SCHEMAS)

    async def fields(self, value: bytes | None) -> dict[str, Json]:
        """Return the fields of a record's value, as JSON would have them.

        Raises:
            ValueError: the value is not a trigger record; the message says why.
            Unavailable: the schema registry cannot be reached.
        """
        if not value or not value.startswith(MAGIC):
            return read_json(value)
        try:
            schema_id = schema_id_of(value)
        except UndecodableEvent as error:
            raise ValueError(f"the value begins like Avro, but has {error}") from error
        return _with_workload(
            _decode(value, schema_id, await self._writer(schema_id), self._reader)
        )

    async def _writer(self, schema_id: int) -> Schema:
        found = self._writers.get(schema_id)
        if found is None:
            try:
                found = _parsed(await self._registry.schema(schema_id))
            except UnknownSchemaId as error:
                raise ValueError(f"the value names Avro schema {schema_id}: {error}") from error
            self._writers[schema_id] = found
        return found


def _parsed(schema: str) -> Schema:
    try:
        return fastavro.parse_schema(orjson.loads(schema))
    except Exception as error:  # the driver raises many kinds for a bad schema
        raise ValueError(f"the value's schema is not Avro: {error}") from error


def _decode(value: bytes, schema_id: int, writer: Schema, reader: Schema) -> dict[str, Json]:
    body = io.BytesIO(value)
    body.seek(HEADER_BYTES)
    try:
        found = fastavro.schemaless_reader(body, writer, reader)
    except Exception as error:  # the driver raises many kinds for bad bytes
        raise ValueError(
            f"the Avro of schema {schema_id} is not a Trigger: {error or type(error).__name__}"
        ) from error
    if body.tell() < len(value):
        raise ValueError(f"{len(value) - body.tell()} bytes follow the value's Avro")
    return cast(dict[str, Json], found)


def _with_workload(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with the workload parsed from its JSON text."""
    fields = dict(found)
    if fields["workload"] is not None:
        try:
            fields["workload"] = orjson.loads(fields["workload"])
        except orjson.JSONDecodeError as error:
            raise ValueError(f"workload: its text is not JSON: {error}") from error
    return fields
