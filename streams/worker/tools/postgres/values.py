"""Conversion of values between JSON and Postgres.

To Postgres: every value is sent as text, which the server casts to the required type:
'2026-01-31' becomes a date and '1e5' stays text in a text column. Numbers and booleans use
SQL syntax. Objects and lists are JSON text, except that a list for an array is an array; text
for a json column is taken as JSON text.

From Postgres: numbers, booleans, text and json unchanged; numeric, dates, times, uuid,
network addresses as text (dates and times in ISO 8601, timestamptz in UTC, `infinity` for
Postgres's infinities); bytea as `\\x…`; interval in Postgres's format; arrays as lists,
composite values as objects. NaN and infinite floats are text, since JSON has none. Decimals,
dates and times in UTC carry their type, so that a frame's columns are typed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import asyncpg
import orjson

from streams.events.model import Json
from streams.events.typed_text import typed_text
from streams.worker.tools.exact_json import LEAST_WHOLE, MOST_WHOLE

_PLAIN = frozenset({str, bool, type(None)})


def as_text(value: object, is_array: bool = False) -> str | None:
    """Return a JSON value as text for Postgres; None is NULL."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if is_array and isinstance(value, Sequence):
        return _array(value)
    return orjson.dumps(value, default=str).decode()


def _array(values: Sequence[object]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    if isinstance(value, list):
        return _array(value)
    text = as_text(value)
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jsonable(value: Any) -> Json:
    """Return a value of the driver as JSON."""
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return value if LEAST_WHOLE <= value <= MOST_WHOLE else str(value)
    if kind is float:
        return value if math.isfinite(value) else _no_number(value)
    if isinstance(value, Decimal):
        return typed_text(value)
    if isinstance(value, date | time):
        return _iso(value)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list | tuple) and not isinstance(value, asyncpg.Record):
        return [jsonable(one) for one in value]
    if isinstance(value, Mapping | asyncpg.Record):
        return {str(name): jsonable(one) for name, one in value.items()}
    return str(value)


def rows_of(records: Sequence[asyncpg.Record]) -> list[Json]:
    """Return records as JSON objects."""
    return [{name: jsonable(value) for name, value in one.items()} for one in records]


def _no_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _iso(value: date | time) -> str:
    if isinstance(value, datetime):
        naive = value.replace(tzinfo=None)
        if naive in (datetime.max, datetime.min):
            return "infinity" if naive == datetime.max else "-infinity"
    elif value in (date.max, date.min):
        return "infinity" if value == date.max else "-infinity"
    return value.isoformat() if isinstance(value, time) else typed_text(value)
