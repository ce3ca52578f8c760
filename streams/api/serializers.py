"""JSON of API responses: 64-bit ids as strings, times in UTC, references as objects."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from aiohttp import web

from streams.api.event_json import RowJson
from streams.events.model import Json, PayloadRef
from streams.payload.content import reference_json

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


def reference_with_url(ref: PayloadRef) -> dict[str, Json]:
    """Return a payload reference with the URL of its bytes on this server."""
    return {**reference_json(ref), "url": _url(ref.sha256, ref.byte_length)}


def _url(digest: str, byte_length: int) -> str:
    return f"/api/payloads/{digest}?byte_length={byte_length}"
