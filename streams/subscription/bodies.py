"""Decoding of message bodies: JSON, Avro in Confluent's wire format, text, bytes."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass

import fastavro
import orjson
from fastavro.types import Schema

from streams.errors import Refused, Unavailable
from streams.events.codec import schema_id_of
from streams.events.errors import UndecodableEvent
from streams.events.model import Json
from streams.schema.registry import SchemaRegistry, UnknownSchemaId
from streams.subscription.avro_values import json_of
from streams.subscription.directives import UnusableMessage
from streams.subscription.model import BodyFormat, PayloadFrom

MAGIC = b"\x00"
HEADER_BYTES = 5
_AVRO_TYPES = ("avro/binary", "application/avro", "application/vnd.apache.avro+binary")


class SchemasUnavailable(Unavailable):
    """The schema registry rejects the request; its address or login must be corrected."""

    dependency = "the schema registry"


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body; `is_base64`: the bytes are neither JSON, Avro nor text."""

    data: Json
    is_base64: bool = False


class BodyReader:
    """Decodes bodies; Avro schemas are read once from the registry."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._writers: dict[int, Schema] = {}

    async def read(
        self, value: bytes | None, wanted: BodyFormat, content_type: str | None, used: PayloadFrom
    ) -> DecodedBody:
        """Return the body of a message; a tombstone's is null.

        Raises:
            UnusableMessage: it is not what the subscription declares.
            Unavailable: the schema registry cannot be reached.
        """
        if value is None:
            return DecodedBody(None)
        match _format(wanted, content_type, value):
            case "avro":
                return DecodedBody(await self._avro(value))
            case "text":
                return _text(value)
            case "bytes":
                return DecodedBody(b64encode(value).decode(), is_base64=True)
        try:
            return DecodedBody(orjson.loads(value))
        except orjson.JSONDecodeError as error:
            if used is PayloadFrom.JSON or wanted is BodyFormat.JSON:
                raise UnusableMessage(f"the body is not JSON: {error}") from error
            return _text(value)

    async def _avro(self, value: bytes) -> Json:
        try:
            schema_id = schema_id_of(value)
        except UndecodableEvent as error:
            raise UnusableMessage(f"the body is not Avro in Confluent's format: {error}") from error
        writer, body = await self._writer(schema_id), io.BytesIO(value)
        body.seek(HEADER_BYTES)
        try:
            found = fastavro.schemaless_reader(body, writer, None)
        except Exception as error:  # the driver raises many kinds for bad bytes
            why = error or type(error).__name__
            raise UnusableMessage(f"the body is not Avro of schema {schema_id}: {why}") from error
        if body.tell() < len(value):
            rest = len(value) - body.tell()
            raise UnusableMessage(f"{rest} bytes follow the body's Avro of schema {schema_id}")
        return json_of(found)

    async def _writer(self, schema_id: int) -> Schema:
        if schema_id not in self._writers:
            try:
                text = await self._registry.schema(schema_id)
            except UnknownSchemaId as error:
                raise UnusableMessage(f"the body names Avro schema {schema_id}: {error}") from error
            except Refused as error:
                raise SchemasUnavailable(f"schema {schema_id} cannot be read: {error}") from error
            try:
                self._writers[schema_id] = fastavro.parse_schema(orjson.loads(text))
            except Exception as error:  # the driver raises many kinds for a bad schema
                why = f"schema {schema_id} of the body is not Avro: {error}"
                raise UnusableMessage(why) from error
        return self._writers[schema_id]


def _format(wanted: BodyFormat, content_type: str | None, value: bytes) -> str:
    """Return the format of a body; its content type wins over the declared format."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in _AVRO_TYPES:
        return "avro"
    if kind == "application/json" or kind.endswith("+json"):
        return "json"
    if kind.startswith("text/"):
        return "text"
    if kind == "application/octet-stream":
        return "bytes"
    if wanted is BodyFormat.AVRO or (wanted is BodyFormat.AUTO and value.startswith(MAGIC)):
        return "avro"
    return "json"


def _text(value: bytes) -> DecodedBody:
    try:
        return DecodedBody(value.decode("utf-8"))
    except UnicodeDecodeError:
        return DecodedBody(b64encode(value).decode(), is_base64=True)
