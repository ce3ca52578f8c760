"""Filters and methods of templates, bounded where their result can outgrow their input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from string import Formatter
from typing import Any, TypeVar
from uuid import UUID

from streams.playbook.sandbox_limits import check_width, modulo, text_of

T = TypeVar("T")


def join(value: Iterable[object], d: str = "") -> str:
    """Return the items as one text with `d` between them."""
    parts: list[str] = []
    length = 0
    for item in value:
        parts.append(str(item))
        length += len(parts[-1]) + len(d)
        text_of(length)
    return str(d).join(parts)


def concat(parts: Sequence[object]) -> str:
    """Return the parts as one text, as `~` does."""
    return join(parts)


def replace(value: object, old: str, new: str, count: int = -1) -> str:
    """Return the text with `old` replaced."""
    text = str(value)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    text_of(len(text) + found * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def printf(value: str, *args: object, **kwargs: object) -> object:
    """Return the formatted pattern."""
    return modulo(str(value), kwargs or args)


def batch(value: Iterable[T], linecount: int) -> Iterator[list[T]]:
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
    """Return the text with its lines after the first indented."""
    lines = str(s).splitlines()
    text_of(len(s) + len(lines) * int(width))
    return ("\n" + " " * int(width)).join(([""] if first else []) + lines).removeprefix("\n")


def padded(method: str, value: object, width: int, *fill: str) -> str:
    """Call a padding method of text."""
    text_of(width)
    return str(getattr(str(value), method)(width, *fill))


FILTERS: Mapping[str, Callable[..., object]] = {
    "batch": batch,
    "center": partial(padded, "center"),
    "format": printf,
    "indent": indent,
    "join": join,
    "replace": replace,
    "sum": total,
}


class _Narrow(Formatter):
    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        if not field_name.replace("_", "a").isalnum():
            raise TypeError(f"{{{field_name}}}: give the value itself to format")
        return self.get_value(
            int(field_name) if field_name.isdigit() else field_name, args, kwargs
        ), ""

    def format_field(self, value: object, format_spec: str) -> str:
        check_width(format_spec)
        return str(super().format_field(value, format_spec))


def _formatted(pattern: str, *args: object, **kwargs: object) -> str:
    text = _Narrow().vformat(pattern, args, kwargs)
    text_of(len(text))
    return text


def _strftime(value: date, pattern: str) -> str:
    check_width(pattern)
    return value.strftime(pattern)


METHODS: Mapping[type, Mapping[str, Callable[..., object]]] = {
    str: {
        "join": lambda text, parts: join(parts, text),
        "replace": replace,
        "format": _formatted,
        **{name: partial(padded, name) for name in ("center", "ljust", "rjust", "zfill")},
    },
    date: {"strftime": _strftime},
}
"""Methods replaced by bounded ones."""

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
"""Attributes that templates may use, by type."""
