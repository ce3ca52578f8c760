"""Text as JSON in a database can hold it: no NUL, no lone surrogate."""

from __future__ import annotations

import re

UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
UNSTORABLE_OR_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""What names and keys may not hold: control characters as well."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` with a replacement character for each one that cannot be stored."""
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shortened(text: str, limit: int = 4_000) -> str:
    """Return `text` as an event can carry it, cut where it is longer than errors should be."""
    text = storable(text)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def has_surrogate(text: str) -> bool:
    """Return whether `text` holds half a character, which is not UTF-8."""
    return _SURROGATE.search(text) is not None
