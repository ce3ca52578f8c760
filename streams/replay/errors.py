"""Errors of replay.

Refused
├── NoSuchExecution    none with this id in the tenant and organization
├── BadCutoff          the moment asked for cannot be one of this execution
└── UnknownProjection  there is no such projection
Inconsistent
├── MissingObject      a payload is missing or damaged
└── TamperedLog        an event is not what was appended, or events are missing
"""

from __future__ import annotations

from collections.abc import Iterable

from streams.errors import Inconsistent, Refused
from streams.events.model import Root


class NoSuchExecution(Refused):
    """There is no such execution in this tenant and organization."""

    def __init__(
        self, execution_id: int, tenant_id: str, organization_id: str, log: str = ""
    ) -> None:
        super().__init__(
            f"execution {execution_id}: not in tenant {tenant_id}, organization {organization_id}"
            f"{f' of {log}' if log else ''}; check the id and both names"
        )


class BadCutoff(Refused):
    """The moment asked for cannot be one of this execution."""


class UnknownProjection(Refused):
    """There is no such projection."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"projection {name!r} does not exist; use one of {', '.join(known)}")


class MissingObject(Inconsistent):
    """A payload that the state depends on is missing or damaged."""

    def __init__(self, root: Root, seq: int, uri: str, why: str) -> None:
        super().__init__(
            f"{root} seq {seq}: the rows in {uri} cannot be read: {why}; restore the object from "
            "a backup or a bundle, or replay to a moment before"
        )
        self.root, self.seq, self.uri = root, seq, uri


class TamperedLog(Inconsistent):
    """An event is not what was appended. Nothing at or after it was folded."""

    def __init__(self, root: Root, seq: int, position: int | None, what: str) -> None:
        place = f"{root} seq {seq}" + ("" if position is None else f", position {position}")
        super().__init__(
            f"{place}: {what}; the log was changed outside of append: restore the event from a "
            "backup or a bundle, and do not rebuild projections before"
        )
        self.root, self.seq, self.position, self.what = root, seq, position, what
