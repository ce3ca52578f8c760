"""Text that Postgres can store in JSON: no NUL, no lone surrogate."""

from __future__ import annotations

import re

UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
UNSTORABLE_OR_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
"""Not allowed in names and keys: control characters as well."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` with unstorable characters replaced."""
    return UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shortened(text: str, limit: int = 4_000) -> str:
    """Return storable `text`, truncated to `limit` characters."""
    text = storable(text)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def has_surrogate(text: str) -> bool:
    """Return whether `text` contains a lone surrogate, which is not valid UTF-8."""
    return _SURROGATE.search(text) is not None
