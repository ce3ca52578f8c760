"""Values of rows, exact and with one text each. Pure.

A number is its decimal value: 1, 1.0 and 1.00 are one number, and a float is the number that its
shortest text shows. Sums are therefore the same in every order. A state holds tagged values:
`["n", "1.5"]`, `["t", "text"]`, `["b", true]`, `["j", "{…}"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow, Underflow
from math import isfinite
from typing import TypeAlias

import orjson
from blake3 import blake3

from streams.events.model import Json
from streams.payload.arrow.times import as_json

Tagged: TypeAlias = list[Json]
"""A kind and a value."""
MOST_DIGITS = 1000
"""Numbers of more digits, before or after the point, are not summed."""
KEY_CHARS = 200
_TEXT_CHARS = 64
_EXACT = Context(
    prec=10 * MOST_DIGITS,
    traps=[Inexact, InvalidOperation, Overflow, Underflow],
)


def number(value: object) -> Decimal | None:
    """Return a number exactly; None: it is not one, or not finite, or too long."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value) if abs(value) < 10**MOST_DIGITS else None
    if isinstance(value, float):
        return Decimal(repr(value)) if isfinite(value) else None
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    exponent = value.as_tuple().exponent
    is_short = isinstance(exponent, int) and exponent > -MOST_DIGITS
    return value if is_short and value.adjusted() < MOST_DIGITS else None


def number_text(value: Decimal) -> str:
    """Return the one text of a number: without exponent, and without zeros at its end."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def total(numbers: Sequence[Decimal]) -> Decimal:
    """Return the exact sum."""
    found = Decimal(0)
    for one in numbers:
        found = _EXACT.add(found, one)
    return found


def tagged(value: object) -> Tagged:
    """Return a value of a row with its kind.

    Raises:
        TypeError: it is not a value of a row.
    """
    if isinstance(value, bool):
        return ["b", value]
    if (found := number(value)) is not None:
        return ["n", number_text(found)]
    plain_value = as_json(value)
    if isinstance(plain_value, str):
        return ["t", plain_value]
    return ["j", orjson.dumps(plain_value, option=orjson.OPT_SORT_KEYS).decode()]


def plain(value: Tagged | None) -> Json:
    """Return a tagged value as JSON; a number that JSON readers would round is text."""
    if value is None:
        return None
    kind, content = value
    if kind == "n":
        return plain_number(str(content))
    return orjson.loads(str(content)) if kind == "j" else content


def plain_number(text: str) -> Json:
    """Return a number as JSON; as text if it is not exact as an integer or a float."""
    if "." not in text:
        whole = int(text)
        return whole if abs(whole) < 2**63 else text
    near = float(text)
    return near if isfinite(near) and number_text(Decimal(repr(near))) == text else text


def rank(value: Tagged) -> tuple[int, Decimal | str]:
    """Return the order of a number or a text: numbers first, then texts by code point."""
    kind, content = value
    return (0, Decimal(str(content))) if kind == "n" else (1, str(content))


def identity(value: object) -> str:
    """Return a text that equal values, and only those, have; long values are hashed."""
    text = orjson.dumps(tagged(value)).decode()
    return text if len(text) <= _TEXT_CHARS else f"#{blake3(text.encode()).hexdigest()}"


def key_value(value: object) -> Json:
    """Return a value as part of a key: null, true or false, an integer, or text.

    A number with a fraction is its decimal text; a long text is cut, and ends with its digest.
    """
    if value is None or isinstance(value, bool):
        return value
    kind, content = tagged(value)
    text = str(content).replace("\0", "\\0")  # Postgres has no such character
    if kind == "n" and "." not in text and abs(int(text)) < 2**63:
        return int(text)
    if len(text) <= KEY_CHARS:
        return text
    return f"{text[:KEY_CHARS]}…#{blake3(text.encode()).hexdigest()}"


def key_digest(key: Sequence[Json]) -> str:
    """Return the name of a key in a table."""
    return blake3(orjson.dumps(list(key))).hexdigest()[:32]
