"""What an event can carry of values, and what only a payload can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

NUL = b"\\u0000"
"""How JSON spells the character that no text of a database has."""
DEEPEST = 150
"""Levels of a value that an event carries; it takes 200, and has some of its own around it."""
VALUES_BYTES = 32 * 1024
"""What an event carries of an author's named values, such as arguments and changes of `ctx`."""
NAMES_BYTES = 16 * 1024
"""What it carries of the names of those that are elsewhere."""


def is_inline(encoded: bytes, room: int) -> bool:
    """Say whether an event that has `room` for it can carry this JSON."""
    return len(encoded) <= room and is_for_events(encoded)


def is_for_events(encoded: bytes) -> bool:
    """Say whether events have words for this JSON, however long it is."""
    return NUL not in encoded and not _is_deep(encoded)


def leaving(encoded: Mapping[str, bytes], room: int) -> list[str]:
    """Return whose values must leave an event: the largest, until the others fit in `room`."""
    sizes = {name: len(name.encode()) + len(data) + 4 for name, data in encoded.items()}
    gone = [name for name, data in encoded.items() if not is_for_events(data)]
    left = sum(sizes.values()) - sum(sizes[name] for name in gone)
    for name in sorted(sizes.keys() - set(gone), key=lambda one: (-sizes[one], one)):
        if left <= room:
            break
        left -= sizes[name]
        gone.append(name)
    return gone


def _is_deep(encoded: bytes) -> bool:
    if encoded.count(b"[") + encoded.count(b"{") <= DEEPEST:
        return False
    level = [orjson.loads(encoded)]
    for _ in range(DEEPEST + 1):
        level = [one for value in level for one in _inside(value) if isinstance(one, dict | list)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
