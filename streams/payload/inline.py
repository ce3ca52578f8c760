"""What an event can carry of values, and what only a payload can."""

from __future__ import annotations

from collections.abc import Mapping

NUL = b"\\u0000"
"""How JSON spells the character that no text of a database has."""
VALUES_BYTES = 32 * 1024
"""What an event carries of an author's named values, such as arguments and changes of `ctx`."""
NAMES_BYTES = 16 * 1024
"""What it carries of the names of those that are elsewhere."""


def is_inline(encoded: bytes, room: int) -> bool:
    """Say whether an event that has `room` for it can carry this JSON."""
    return len(encoded) <= room and NUL not in encoded


def leaving(encoded: Mapping[str, bytes], room: int) -> list[str]:
    """Return whose values must leave an event: the largest, until the others fit in `room`."""
    sizes = {name: len(name.encode()) + len(data) + 4 for name, data in encoded.items()}
    gone = [name for name, data in encoded.items() if NUL in data]
    left = sum(sizes.values()) - sum(sizes[name] for name in gone)
    for name in sorted(sizes.keys() - set(gone), key=lambda one: (-sizes[one], one)):
        if left <= room:
            break
        left -= sizes[name]
        gone.append(name)
    return gone
