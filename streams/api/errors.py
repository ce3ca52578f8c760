"""Why the API turns a request down.

Refused
├── NotFound       there is no such thing, or it is another tenant's
├── NotYours       somebody else holds the frame or command
├── NotAllowed     the caller did not show that it may ask this
└── BadRequest     the request itself is wrong; every problem is named
"""

from __future__ import annotations

from streams.errors import Refused


class NotFound(Refused):
    """There is no such thing in the caller's scope."""

    def __init__(self, kind: str, name: object, hint: str = "") -> None:
        super().__init__(f"there is no {kind} {name}" + (f"; {hint}" if hint else ""))


class NotYours(Refused):
    """Somebody else holds it, or nobody does any more."""


class NotAllowed(Refused):
    """The caller did not show that it may ask this."""


class BadRequest(Refused):
    """A request that cannot be understood; `problems` has every reason."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
