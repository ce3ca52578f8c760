"""Why the catalog refuses.

Refused
├── UnknownPath      nothing was registered under this path
├── UnknownVersion   the path is there, the version is not, or it is retired
└── TooLong          the content does not fit an event, and there is no store for it
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from streams.errors import Refused


class UnknownPath(Refused):
    """Nothing was registered under this path."""

    def __init__(self, path: str, paths: Sequence[str]) -> None:
        near = get_close_matches(path, paths, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "register it first"
        super().__init__(f"there is no playbook {path!r} in the catalog; {hint}")
        self.path, self.near = path, tuple(near)


class UnknownVersion(Refused):
    """There is no such version, or it may not be started any more."""

    def __init__(self, name: str, version: int | None, versions: Sequence[int]) -> None:
        there = ", ".join(map(str, versions[-10:])) or "none"
        what = "a version that can be started" if version is None else f"version {version}"
        super().__init__(f"{name}: there is no {what}; there are: {there}")
        self.name, self.version = name, version


class TooLong(Refused):
    """A content that fits no event."""

    def __init__(self, path: str, length: int, limit: int) -> None:
        super().__init__(
            f"{path}: {length} bytes do not fit an event (limit {limit}), and no payload store "
            "is open to keep them; open one, or split the playbook"
        )
