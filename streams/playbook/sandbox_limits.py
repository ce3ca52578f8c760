"""Operations whose answer can be far larger than what goes in, each with a bound.

An expression may use as much as its input is worth, and no more: a text of a gigabyte is made
by six characters (`'a' * n`), in one call that nothing could interrupt.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial, wraps
from itertools import islice
from string import Formatter
from threading import local
from typing import Any
from uuid import UUID

MAX_TEXT = 4 * 1024 * 1024
"""Characters of a text that an expression makes."""
MAX_ITEMS = 100_000
"""Items of a list that an expression makes; also of a range."""
MAX_BITS = 4096
"""Bits of a whole number that an expression makes."""

MAX_SPENT = 16 * MAX_TEXT
"""Characters, and eighths of list items, that one rendering makes all in all."""

_WIDE = re.compile(r"\d{5,}|\*")


class LimitExceeded(Exception):
    """What an expression asked for passes a limit."""


class _Spent(local):
    """What the rendering under way has made; a rendering never waits, so a thread has one."""

    size = 0


spent = _Spent()


def text_of(length: int) -> None:
    """Refuse a text of that length, or one text too many."""
    if length > MAX_TEXT:
        raise LimitExceeded(f"its text would have {length} characters, the limit is {MAX_TEXT}")
    _spend(length)


def items_of(length: int) -> None:
    """Refuse a list of that length, or one list too many."""
    if length > MAX_ITEMS:
        raise LimitExceeded(f"its list would have {length} items, the limit is {MAX_ITEMS}")
    _spend(8 * length)


def _spend(size: int) -> None:
    spent.size += size
    if spent.size > MAX_SPENT:
        raise LimitExceeded(
            f"all its texts and lists together have more than {MAX_SPENT} characters"
        )


def counted(answer: Any) -> Any:
    """Return what a filter or method made, once it is counted."""
    if type(answer) is str:
        _spend(len(answer))
    elif type(answer) is list:
        _spend(8 * len(answer))
    return answer


def counting(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter whose answers are counted."""

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        return counted(make(*args, **kwargs))

    return call


def _sized(left: Any, right: Any, length: Callable[[int, int], int]) -> None:
    if isinstance(left, str):
        text_of(length(len(left), right if isinstance(right, int) else len(right)))
    elif isinstance(left, (list, tuple)):
        items_of(length(len(left), right if isinstance(right, int) else len(right)))


def add(left: Any, right: Any) -> Any:
    """Return left + right."""
    if type(left) is not int and isinstance(left, (str, list, tuple)) and hasattr(right, "__len__"):
        _sized(left, right, operator.add)
    return left + right


def multiply(left: Any, right: Any) -> Any:
    """Return left * right."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MAX_BITS:
            raise LimitExceeded(f"the product has more than {MAX_BITS} bits")
    elif isinstance(right, int):
        _sized(left, right, operator.mul)
    elif isinstance(left, int):
        _sized(right, left, operator.mul)
    return left * right


def power(left: Any, right: Any) -> Any:
    """Return left ** right."""
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MAX_BITS:
        raise LimitExceeded(f"the power has more than {MAX_BITS} bits")
    return left**right


def modulo(left: Any, right: Any) -> Any:
    """Return left % right; for a text that is printf's way to format."""
    if isinstance(left, str):
        _narrow(left)
        left = left % right
        text_of(len(left))
        return left
    return left % right


def _narrow(pattern: str) -> None:
    if _WIDE.search(pattern):
        raise LimitExceeded(f"the width in {pattern[:40]!r} is too large, or not known beforehand")


BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": modulo,
}


# ---------------------------------------------------------------- filters


def join(value: Iterable[Any], d: str = "") -> str:
    """Return the items as one text with `d` between them."""
    parts: list[str] = []
    length = 0
    for item in value:
        parts.append(str(item))
        length += len(parts[-1]) + len(d)
        text_of(length)
    return str(d).join(parts)


def concat(parts: Sequence[Any]) -> str:
    """Return what `~` makes: the parts as one text."""
    return join(parts)


def replace(value: Any, old: str, new: str, count: int = -1) -> str:
    """Return the text with `old` replaced."""
    text = str(value)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    text_of(len(text) + found * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def printf(value: str, *args: Any, **kwargs: Any) -> Any:
    """Return the pattern with its values put in."""
    return modulo(str(value), kwargs or args)


def batch(value: Iterable[Any], linecount: int) -> Iterator[list[Any]]:
    """Yield lists of at most `linecount` items."""
    rest = iter(value)
    while part := list(islice(rest, linecount)):
        yield part


def total(iterable: Iterable[Any], attribute: str | None = None, start: Any = 0) -> Any:
    """Return the sum of numbers."""
    if not isinstance(start, (int, float, Decimal)):
        raise TypeError("sum adds numbers; join lists with +")
    for item in iterable:
        start += item if attribute is None else item[attribute]
    return start


def indent(s: str, width: int = 4, first: bool = False) -> str:
    """Return the text with its lines after the first moved to the right."""
    lines = str(s).splitlines()
    text_of(len(s) + len(lines) * int(width))
    return ("\n" + " " * int(width)).join(([""] if first else []) + lines).removeprefix("\n")


def padded(method: str, value: Any, width: int, *fill: str) -> str:
    """Call one of the methods of text that fill it up to a width."""
    text_of(width)
    return str(getattr(str(value), method)(width, *fill))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "batch": batch,
    "center": partial(padded, "center"),
    "format": printf,
    "indent": indent,
    "join": join,
    "replace": replace,
    "sum": total,
}


# ---------------------------------------------------------------- attributes


class _Narrow(Formatter):
    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        if not field_name.replace("_", "a").isalnum():
            raise TypeError(f"{{{field_name}}}: give the value itself to format")
        return self.get_value(
            int(field_name) if field_name.isdigit() else field_name, args, kwargs
        ), ""

    def format_field(self, value: Any, format_spec: str) -> Any:
        _narrow(format_spec)
        return super().format_field(value, format_spec)


def _formatted(pattern: str, *args: Any, **kwargs: Any) -> str:
    text = _Narrow().vformat(pattern, args, kwargs)
    text_of(len(text))
    return text


def _strftime(value: date, pattern: str) -> str:
    _narrow(pattern)
    return value.strftime(pattern)


METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    str: {
        "join": lambda text, parts: join(parts, text),
        "replace": replace,
        "format": _formatted,
        **{name: partial(padded, name) for name in ("center", "ljust", "rjust", "zfill")},
    },
    date: {"strftime": _strftime},
}
"""Methods that are called with a bound instead of as they are."""

_CALENDAR = "year month day weekday isoweekday isoformat isocalendar"
_DAYTIME = "hour minute second microsecond tzinfo isoformat"
PLAIN: Sequence[tuple[type, frozenset[str]]] = tuple(
    (kind, frozenset(names.split()))
    for kind, names in (
        (
            str,
            "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal "
            "isdigit islower isnumeric isspace istitle isupper lower lstrip partition "
            "removeprefix removesuffix rfind rindex rpartition rsplit rstrip split splitlines "
            "startswith strip swapcase title upper",
        ),
        (dict, "get items keys values"),
        (Mapping, "get items keys values"),
        (list, "count index"),
        (tuple, "count index grouper list"),
        (int, ""),
        (float, "is_integer"),
        (datetime, f"{_CALENDAR} {_DAYTIME} date time timestamp"),
        (date, _CALENDAR),
        (time, _DAYTIME),
        (timedelta, "days seconds microseconds total_seconds"),
        (Decimal, "is_nan is_finite"),
        (bytes, "hex"),
        (UUID, "hex"),
    )
)
"""Attributes that templates may use as they are, by the type that has them."""
