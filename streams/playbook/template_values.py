"""Values that an expression may return: JSON, and types of database rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from jinja2.runtime import Undefined

from streams.events.typed_text import TypedText

_AS_THEY_ARE = frozenset({str, TypedText, bool, type(None)})
_FROM_ROWS = (Decimal, date, time, timedelta, UUID, bytes)
"""Types of database rows; passed through, so that they can be bound again."""
_LEAST, _MOST = -(2**63), 2**64


def to_plain(value: Any, watch: Callable[[], None]) -> object:
    """Return the value with only JSON and the types of database rows in it.

    Tuples and other iterables become lists. Undefined values, functions and other objects
    are refused.

    Raises:
        TypeError, ValueError: it holds a value of another type.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is int:
        if not _LEAST <= value < _MOST:
            raise ValueError(f"{value:.3e} does not fit in 64 bits")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number in JSON")
        return value
    watch()
    if isinstance(value, Undefined):
        str(value)  # raises and names what is missing, unless it may be empty
        return None
    if isinstance(value, Mapping):
        return _mapping(value, watch)
    if kind is list:
        return _list(value, watch)
    return _other(value, watch)


def _mapping(value: Mapping[object, object], watch: Callable[[], None]) -> object:
    made = {key: to_plain(item, watch) for key, item in value.items()}
    if not all(type(key) is str for key in made):
        return {str(key): item for key, item in made.items()}
    same = type(value) is dict and all(made[key] is item for key, item in value.items())
    return value if same else made


def _list(value: list[object], watch: Callable[[], None]) -> list[object]:
    made = [to_plain(item, watch) for item in value]
    return value if all(map(lambda one, other: one is other, made, value)) else made


def _other(value: object, watch: Callable[[], None]) -> object:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, _FROM_ROWS):
        return value
    if callable(value):
        raise TypeError(f"it is a function; did you mean to call it, {_name(value)}()?")
    if isinstance(value, Iterable):
        return [to_plain(item, watch) for item in value]
    raise TypeError(f"its value is a {type(value).__name__}, which is not JSON")


def _name(value: object) -> str:
    return str(getattr(getattr(value, "func", value), "__name__", type(value).__name__))
