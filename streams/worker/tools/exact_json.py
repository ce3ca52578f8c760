"""JSON parser that preserves large integers.

orjson reads an integer beyond 64 bits as a float, which loses digits. Such an integer is
returned as text, like a decimal, because nothing downstream can carry it as a number.
"""

from __future__ import annotations

import json

import orjson

from streams.events.model import Json

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 19
LEAST_WHOLE, MOST_WHOLE = -(2**63), 2**64 - 1
_MOST_DIGITS = 20


def loads(data: bytes | str) -> Json:
    """Parse JSON.

    Raises:
        orjson.JSONDecodeError: it is not JSON, or nested too deep.
    """
    value: Json = orjson.loads(data)
    text = data.encode() if isinstance(data, str) else data
    # This search takes a fraction of the time of parsing.
    is_long = _LONG in text.translate(_ZEROS)
    if not is_long:
        return value
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise orjson.JSONDecodeError("it is nested too deep", "", 0) from None
    return value


def _whole(digits: str) -> int | str:
    if len(digits.lstrip("-")) > _MOST_DIGITS:
        return digits
    number = int(digits)
    return number if LEAST_WHOLE <= number <= MOST_WHOLE else digits
