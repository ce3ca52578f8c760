"""Text that a database gave as a decimal, a date or a time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


class Told(str):
    """Text to everybody who reads it; what it was lets a column of rows have a type.

    It remembers for as long as it is passed on as it is: what is made of it, or has been
    through JSON, is text.
    """

    __slots__ = ("_was",)
    _was: Any

    def __new__(cls, text: str, was: Decimal | date | None = None) -> Told:
        made = super().__new__(cls, text)
        made._was = was
        return made


def was(text: Told) -> Any:
    """Return the decimal, the date or the time that a text was."""
    return text._was  # hidden from templates, which must see text


def told(value: Decimal | date) -> str:
    """Return a decimal, a date or a time as JSON has it: text, ISO 8601 for times.

    What no column holds exactly (NaN, a zero below zero, a time without a zone) is only text.
    """
    if isinstance(value, Decimal):
        text = format(value, "f")
        is_exact = value.is_finite() and not (value.is_zero() and value.is_signed())
        return Told(text, value) if is_exact else text
    is_exact = not isinstance(value, datetime) or value.tzinfo is UTC
    return Told(value.isoformat(), value) if is_exact else value.isoformat()
