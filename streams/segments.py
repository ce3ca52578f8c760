"""Validity of names: locator segments (tenants, clusters, nodes …) and pools."""

from __future__ import annotations

import re

PLAIN = re.compile(r"[A-Za-z0-9._~-]+")
_POOL = re.compile(r"[A-Za-z0-9._-]{1,200}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def wrong_segment(value: str) -> str | None:
    """Return why `value` is not a valid segment, or None if it is."""
    if value in (".", ".."):
        return f"must not be {value!r}"
    if PLAIN.fullmatch(value):
        return None
    if not value:
        return "is empty"
    if _CONTROL.search(value):
        return "contains a control character"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "cannot be encoded as UTF-8"
    return None


def is_pool_name(name: str) -> bool:
    """Return whether `name` can be a pool's: it is part of the name of a topic."""
    return _POOL.fullmatch(name) is not None
