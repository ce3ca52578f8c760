"""Avro values as JSON: what JSON lacks becomes text."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

from streams.events.model import Json


def json_of(value: object) -> Json:
    """Return a decoded Avro value as JSON.

    Bytes and fixed become base64, decimals and UUIDs text, times ISO 8601, and numbers that
    JSON lacks their names: NaN, Infinity, -Infinity.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _name(value)
        case dict():
            return {str(key): json_of(item) for key, item in value.items()}
        case list() | tuple():
            return [json_of(item) for item in value]
        case bytes() | bytearray():
            return b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return str(value)


def _name(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
