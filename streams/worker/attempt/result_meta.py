"""What an event tells of a result's `meta`: text that a log can take, and not too much of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from streams.events.model import Json
from streams.results.inline import leaving
from streams.worker.attempt.results import encode, plain

META_BYTES = 12 * 1024
TEXT_CHARS = 1_000
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")


def told_meta(meta: Mapping[str, Json]) -> dict[str, Json]:
    """Return `meta` as an event can carry it; of values that are too large, the beginning."""
    if not meta:
        return {}
    clean: dict[str, Json] = plain(_clean(dict(meta)))
    encoded = {name: encode(value) for name, value in clean.items()}
    gone = leaving(encoded, META_BYTES)
    if not gone:
        return clean
    short: dict[str, Json] = {name: _beginning(clean[name], encoded[name]) for name in gone[:10]}
    kept = {name: value for name, value in clean.items() if name not in set(gone)}
    if leaving({name: encode(value) for name, value in {**kept, **short}.items()}, 2 * META_BYTES):
        return {"left_out": f"{len(clean)} values, {len(encode(clean))} bytes"}
    return {**kept, **short}


def _beginning(value: Json, encoded: bytes) -> Json:
    if isinstance(value, str):
        return f"{value[:TEXT_CHARS]}… ({len(value)} characters)"
    return f"… ({len(encoded)} bytes, more than an event tells)"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
