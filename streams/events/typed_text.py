"""Text of decimals, dates and times that preserves its database type."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal


class TypedText(str):
    """A `str` with its original value, from which a column's type is derived.

    Only the same object has it: derived strings and decoded JSON are plain text.
    """

    __slots__ = ("_was",)
    _was: Decimal | date | None

    def __new__(cls, text: str, was: Decimal | date | None = None) -> TypedText:
        made = super().__new__(cls, text)
        made._was = was
        return made


def value_of(text: TypedText) -> Decimal | date | None:
    """Return the original decimal, date or time."""
    return text._was  # private: templates must see text only


def typed_text(value: Decimal | date) -> str:
    """Return a decimal, a date or a time as JSON text, ISO 8601 for times.

    Values that no column stores exactly (NaN, -0, a time without a zone) are plain text.
    """
    if isinstance(value, Decimal):
        text = format(value, "f")
        is_exact = value.is_finite() and not (value.is_zero() and value.is_signed())
        return TypedText(text, value) if is_exact else text
    is_exact = not isinstance(value, datetime) or value.tzinfo is UTC
    return TypedText(value.isoformat(), value) if is_exact else value.isoformat()
