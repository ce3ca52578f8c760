"""`meta` of a result in an event: valid text, of limited size."""

from __future__ import annotations

from collections.abc import Mapping

from streams.events.model import Json
from streams.events.reading import fields_of
from streams.events.text import storable
from streams.results.limits import META_BYTES
from streams.results.spill import encode_result, normalized, oversized

TEXT_CHARS = 1_000


def serialize_meta(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return `meta` as an event can carry it; large values are truncated."""
    if not meta:
        return {}
    clean = fields_of(normalized(_clean(dict(meta))))
    encoded = _encoded(clean)
    large = oversized(encoded, META_BYTES)
    if not large:
        return clean
    short: dict[str, Json] = {name: _beginning(clean[name], encoded[name]) for name in large[:10]}
    small = {name: value for name, value in clean.items() if name not in set(large)}
    if oversized(_encoded({**small, **short}), 2 * META_BYTES):
        return {"left_out": f"{len(clean)} values, {len(encode_result(clean))} bytes"}
    return {**small, **short}


def _encoded(values: Mapping[str, Json]) -> dict[str, bytes]:
    return {name: encode_result(value) for name, value in values.items()}


def _beginning(value: Json, encoded: bytes) -> Json:
    if isinstance(value, str):
        return f"{value[:TEXT_CHARS]}… ({len(value)} characters)"
    return f"… ({len(encoded)} bytes, too large for an event)"


def _clean(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
