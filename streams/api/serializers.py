"""JSON of API responses: 64-bit ids as strings, times in UTC, references as objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson
from aiohttp import web

from streams.events.model import Event, Json, PayloadRef
from streams.payload.content import reference_json

RowJson: TypeAlias = dict[str, Any]
"""A row or an event as JSON: its fields have the types of their columns."""
_REFERENCES = frozenset(("result_ref", "output_ref", "content_ref"))
_JSON_COLUMNS = _REFERENCES | {"state", "result", "frame_policy", "cursor"}


def json_response(body: object, status: int = 200) -> web.Response:
    """Return a JSON response."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


def row_json(row: Mapping[str, object]) -> RowJson:
    """Serialize a row of a projection."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: object) -> object:
    if name in _JSON_COLUMNS and isinstance(value, str):
        value = orjson.loads(value)
    if name in _REFERENCES and isinstance(value, dict) and "sha256" in value:
        return {**value, "url": _url(value["sha256"], value["byte_length"])}
    if name.endswith("_id") and isinstance(value, int):
        return str(value)
    return value


def event_json(event: Event) -> RowJson:
    """Serialize an event; empty fields are omitted."""
    fields = {
        "event_id": str(event.event_id),
        "seq": event.seq,
        "position": event.position,
        "event_type": event.type,
        "stream_id": event.stream_id,
        "stream_version": event.stream_version,
        "event_time": event.event_time,
        "ingest_time": event.ingest_time,
        "producer": event.producer,
        "causation_id": None if event.causation_id is None else str(event.causation_id),
        "correlation_id": event.correlation_id,
        "node_name": event.node_name,
        "node_type": event.node_type,
        "status": event.status,
        "error": event.error,
        "meta": dict(event.meta),
        "context": event.context,
        "result": event.result,
        "payload_ref": None if event.payload_ref is None else reference_json(event.payload_ref),
        "checksum": event.checksum,
    }
    return {name: value for name, value in fields.items() if value is not None}


def reference_with_url(ref: PayloadRef) -> dict[str, Json]:
    """Return a payload reference with the URL of its bytes on this server."""
    return {**reference_json(ref), "url": _url(ref.sha256, ref.byte_length)}


def _url(digest: str, byte_length: int) -> str:
    return f"/api/payloads/{digest}?byte_length={byte_length}"
