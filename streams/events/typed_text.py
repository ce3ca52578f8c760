"""Text that a database gave as a decimal, a date or a time."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal


class TypedText(str):
    """Text to everybody who reads it; what it was lets a column of rows have a type.

    It remembers for as long as it is passed on as it is: what is made of it, or has been
    through JSON, is text.
    """

    __slots__ = ("_was",)
    _was: Decimal | date | None

    def __new__(cls, text: str, was: Decimal | date | None = None) -> TypedText:
        made = super().__new__(cls, text)
        made._was = was
        return made


def value_of(text: TypedText) -> Decimal | date | None:
    """Return the decimal, the date or the time that a text was."""
    return text._was  # hidden from templates, which must see text


def typed_text(value: Decimal | date) -> str:
    """Return a decimal, a date or a time as JSON has it: text, ISO 8601 for times.

    What no column holds exactly (NaN, a zero below zero, a time without a zone) is only text.
    """
    if isinstance(value, Decimal):
        text = format(value, "f")
        is_exact = value.is_finite() and not (value.is_zero() and value.is_signed())
        return TypedText(text, value) if is_exact else text
    is_exact = not isinstance(value, datetime) or value.tzinfo is UTC
    return TypedText(value.isoformat(), value) if is_exact else value.isoformat()
