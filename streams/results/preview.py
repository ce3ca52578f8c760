"""Short previews of values, for references and errors."""

from __future__ import annotations

import orjson

from streams.events.model import Json
from streams.events.text import storable

_SAMPLE_TEXT = 80


def preview_of(value: Json, limit: int) -> Json:
    """Return a preview of at most about `limit` bytes; None if none fits."""
    if isinstance(value, list):
        sample: list[Json] = []
        listed: dict[str, Json] = {"_items": len(value), "_sample": sample}
        for item in value[:10]:
            sample.append(_short(item))
            if len(_dumps(listed)) > limit:
                sample.pop()
                break
        return listed if len(_dumps(listed)) <= limit else None
    if isinstance(value, dict):
        preview: dict[str, Json] = {}
        for key, item in list(value.items())[:50]:
            preview[str(key)] = _short(item)
            if len(_dumps(preview)) > limit:
                del preview[str(key)]
                break
        return preview or None
    if isinstance(value, str):
        return {"_characters": len(value), "_sample": storable(value[: max(0, limit // 8)])}
    return value


def _short(value: Json) -> Json:
    if isinstance(value, str):
        return storable(_cut(value))
    if isinstance(value, list) and len(_dumps(value)) > _SAMPLE_TEXT:
        return {"_items": len(value)}
    if isinstance(value, dict) and len(_dumps(value)) > 4 * _SAMPLE_TEXT:
        return {"_keys": [storable(_cut(str(key))) for key in list(value)[:10]]}
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _SAMPLE_TEXT else f"{text[:_SAMPLE_TEXT]}…"


def _dumps(value: object) -> bytes:
    return orjson.dumps(value, default=str)
