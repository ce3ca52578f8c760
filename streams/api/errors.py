"""Errors of the API.

Refused
├── NotFound       it does not exist, or belongs to another tenant
├── NotYours       another worker holds the frame or command
├── NotAllowed     the caller is not authorized
└── BadRequest     the request is invalid; all problems are listed
"""

from __future__ import annotations

from streams.errors import Refused


class NotFound(Refused):
    """It does not exist in the caller's scope."""

    def __init__(self, kind: str, name: object, hint: str = "") -> None:
        super().__init__(f"there is no {kind} {name}" + (f"; {hint}" if hint else ""))


class NotYours(Refused):
    """Another worker holds the lease, or the lease expired."""


class NotAllowed(Refused):
    """The caller is not authorized."""


class BadRequest(Refused):
    """The request is invalid; `problems` lists every reason."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
