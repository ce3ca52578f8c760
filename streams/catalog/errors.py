"""Errors of the catalog.

Refused
├── UnknownPath      nothing is registered under this path
├── UnknownVersion   the version does not exist, or is retired
└── TooLong          the content does not fit in an event, and there is no payload store
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from streams.errors import Refused


class UnknownPath(Refused):
    """Nothing is registered under this path."""

    def __init__(self, path: str, paths: Sequence[str]) -> None:
        near = get_close_matches(path, paths, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "register it first"
        super().__init__(f"there is no playbook {path!r} in the catalog; {hint}")
        self.path, self.near = path, tuple(near)


class UnknownVersion(Refused):
    """The version does not exist, or is retired."""

    def __init__(self, name: str, version: int | None, versions: Sequence[int]) -> None:
        available = ", ".join(map(str, versions[-10:])) or "none"
        what = "a version that can be started" if version is None else f"version {version}"
        super().__init__(f"{name}: there is no {what}; available: {available}")
        self.name, self.version = name, version


class TooLong(Refused):
    """The content does not fit in an event."""

    def __init__(self, path: str, length: int, limit: int) -> None:
        super().__init__(
            f"{path}: {length} bytes do not fit in an event (limit {limit}), and no payload store "
            "is configured; configure one, or split the playbook"
        )
