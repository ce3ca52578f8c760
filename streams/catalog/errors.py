"""Errors of the catalog.

Refused
├── UnknownPath      nothing is registered under this path
├── UnknownVersion   the version does not exist, or is retired
├── OtherKind        the path belongs to an entry of another kind
├── TakenWebhook     another subscription has the gateway_path
└── TooLong          the content does not fit in an event, and there is no payload store
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from streams.errors import Refused


class UnknownPath(Refused):
    """Nothing is registered under this path."""

    def __init__(self, path: str, paths: Sequence[str], kind: str | None = "playbook") -> None:
        near = get_close_matches(path, paths, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "register it first"
        super().__init__(f"there is no {kind or 'entry'} {path!r} in the catalog; {hint}")
        self.path, self.near = path, tuple(near)


class UnknownVersion(Refused):
    """The version does not exist, or is retired."""

    def __init__(self, name: str, version: int | None, versions: Sequence[int]) -> None:
        available = ", ".join(map(str, versions[-10:])) or "none"
        what = "a version that can be started" if version is None else f"version {version}"
        super().__init__(f"{name}: there is no {what}; available: {available}")
        self.name, self.version = name, version


class OtherKind(Refused):
    """The path belongs to an entry of another kind."""

    def __init__(self, path: str, found: str, wanted: str) -> None:
        super().__init__(f"{path}: is a {found}, not a {wanted}; use another path")
        self.path, self.kind = path, found


class TakenWebhook(Refused):
    """Another subscription has the gateway_path."""

    def __init__(self, path: str, gateway_path: str, other: str) -> None:
        super().__init__(
            f"{path}: gateway_path {gateway_path} belongs to the subscription {other}; "
            "use another one"
        )


class TooLong(Refused):
    """The content does not fit in an event."""

    def __init__(self, path: str, length: int, limit: int) -> None:
        super().__init__(
            f"{path}: {length} bytes do not fit in an event (limit {limit}), and no payload store "
            "is configured; configure one, or shorten it"
        )
