"""Decimals and times between Python, Arrow and JSON.

In Arrow a decimal has precision and scale, and a timestamp is in UTC with its unit. In JSON
both are text: decimals without exponent, times in ISO 8601.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

from streams.events.model import Json

MAX_128, MAX_256 = 38, 76


class Unfit(Exception):
    """The values do not fit into one column of their kind."""


def special_column(values: Sequence[object]) -> pa.Array:
    """Return decimals, dates or times (and nulls) as a column of their kind.

    Raises:
        Unfit: a time has no zone or is out of range, or a decimal is NaN or has too many digits.
    """
    kind = next(type(value) for value in values if value is not None)
    if kind is Decimal:
        decimals = [value for value in values if isinstance(value, Decimal)]
        return pa.array(values, decimal_type(decimals))
    if kind is not datetime:
        return pa.array(values, pa.date32())
    times = (value for value in values if isinstance(value, datetime))
    if any(value.tzinfo is None or _in_utc(value).tzinfo is not UTC for value in times):
        raise Unfit("a time without a zone, or beyond the years that UTC has")
    return pa.array(values, pa.timestamp("us", tz="UTC"))


def decimal_type(values: Sequence[Decimal]) -> pa.DataType:
    """Return the narrowest type that holds all of them."""
    scale, whole = 0, 1
    for value in values:
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int):
            raise Unfit("a decimal that is not a number")
        scale, whole = max(scale, -exponent), max(whole, value.adjusted() + 1)
    return _decimal(whole + scale, scale)


def as_json(value: object) -> Json:
    """Return a value of Arrow or a driver as JSON.

    Raises:
        TypeError: JSON cannot represent it.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _no_number(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else _in_utc(value)).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list):
        return [as_json(one) for one in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: as_json(one) for name, one in value.items()}
    raise TypeError(f"not JSON: {value!r:.200}")


def _in_utc(value: datetime) -> datetime:
    """Return a time in UTC, or unchanged if that would be in the year 0 or 10000."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return value


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision <= MAX_128:
        return pa.decimal128(precision, scale)
    if precision <= MAX_256:
        return pa.decimal256(precision, scale)
    raise Unfit(f"a decimal of {precision} digits")


def _no_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
