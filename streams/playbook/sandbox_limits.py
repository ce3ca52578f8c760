"""Size limits of expressions, and the operators that enforce them.

Six characters (`'a' * n`) make a text of a gigabyte, in one call that nothing can interrupt:
the size is checked before the value is made.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sized
from functools import wraps
from threading import local
from typing import ParamSpec, TypeVar

MAX_TEXT = 4 * 1024 * 1024
"""Characters of a text that an expression makes."""
MAX_ITEMS = 100_000
"""Items of a list that an expression makes; also of a range."""
MAX_BITS = 4096
"""Bits of a whole number that an expression makes."""

MAX_SPENT = 16 * MAX_TEXT
"""Total characters, and eighths of list items, of one rendering."""

P = ParamSpec("P")
T = TypeVar("T")
_WIDE = re.compile(r"\d{5,}|\*")


class LimitExceeded(Exception):
    """A value of an expression exceeds a size limit."""


class _Spent(local):
    """Size of the current rendering's values; a rendering never awaits, so it is per thread."""

    size = 0


spent = _Spent()


def text_of(length: int) -> None:
    """Reject a text of that length, or one that exceeds the total."""
    if length > MAX_TEXT:
        raise LimitExceeded(f"its text would have {length} characters, the limit is {MAX_TEXT}")
    _spend(length)


def items_of(length: int) -> None:
    """Reject a list of that length, or one that exceeds the total."""
    if length > MAX_ITEMS:
        raise LimitExceeded(f"its list would have {length} items, the limit is {MAX_ITEMS}")
    _spend(8 * length)


def _spend(size: int) -> None:
    spent.size += size
    if spent.size > MAX_SPENT:
        raise LimitExceeded(
            f"all its texts and lists together have more than {MAX_SPENT} characters"
        )


def counted(answer: T) -> T:
    """Return a filter's or method's value, after counting its size."""
    if type(answer) is str and isinstance(answer, str):
        _spend(len(answer))
    elif type(answer) is list and isinstance(answer, list):
        _spend(8 * len(answer))
    return answer


def counting(make: Callable[P, T]) -> Callable[P, T]:
    """Return a filter whose values are counted."""

    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return counted(make(*args, **kwargs))

    return call


def _check_size(left: object, right: int | Sized, length: Callable[[int, int], int]) -> None:
    size = right if isinstance(right, int) else len(right)
    if isinstance(left, str):
        text_of(length(len(left), size))
    elif isinstance(left, (list, tuple)):
        items_of(length(len(left), size))


def add(left: object, right: object) -> object:
    """Return left + right."""
    if type(left) is not int and isinstance(left, (str, list, tuple)) and isinstance(right, Sized):
        _check_size(left, right, operator.add)
    result: object = operator.add(left, right)
    return result


def multiply(left: object, right: object) -> object:
    """Return left * right."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MAX_BITS:
            raise LimitExceeded(f"the product has more than {MAX_BITS} bits")
    elif isinstance(right, int):
        _check_size(left, right, operator.mul)
    elif isinstance(left, int):
        _check_size(right, left, operator.mul)
    result: object = operator.mul(left, right)
    return result


def power(left: object, right: object) -> object:
    """Return left ** right."""
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > MAX_BITS:
        raise LimitExceeded(f"the power has more than {MAX_BITS} bits")
    result: object = operator.pow(left, right)
    return result


def modulo(left: object, right: object) -> object:
    """Return left % right; of text, printf formatting."""
    if isinstance(left, str):
        check_width(left)
        text = left % right
        text_of(len(text))
        return text
    result: object = operator.mod(left, right)
    return result


def check_width(pattern: str) -> None:
    """Reject a format whose width is large, or dynamic."""
    if _WIDE.search(pattern):
        raise LimitExceeded(f"the width in {pattern[:40]!r} is too large, or not known beforehand")


BINARY: Mapping[str, Callable[[object, object], object]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": modulo,
}
