"""What the catalog is, and what it needs from the log beside appending and reading."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from streams.events.model import Event
from streams.payload.port import Scope
from streams.playbook.model import Playbook


@dataclass(frozen=True, slots=True)
class Registered:
    """A version of a playbook that the catalog has."""

    catalog_id: int
    version: int
    path: str
    is_new: bool = False
    """Whether this call made the version, and the content was not the newest already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A version as people see it in a list."""

    catalog_id: int
    version: int
    path: str
    kind: str
    content_sha256: str
    registered_at: datetime
    is_retired: bool = False
    """It is no longer started, but what runs with it goes on."""


class Playbooks(Protocol):
    """Gives compiled playbooks; a version never changes, so they are kept for ever."""

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return the playbook.

        Raises:
            UnknownVersion: there is none.
            BadPlaybook: it was registered, but cannot be read any more.
            Unavailable: the log cannot be reached.
        """
        ...


class CatalogEvents(Protocol):
    """Finds the events of catalog roots by path."""

    async def of_path(self, scope: Scope, path: str) -> Sequence[Event]:
        """Return the catalog events of a path, oldest first.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def of_scope(self, scope: Scope) -> Sequence[Event]:
        """Return the catalog events of every path, oldest first of each root.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    def alone(self, scope: Scope, path: str) -> AbstractAsyncContextManager[None]:
        """Hold a path, so that nobody else registers it meanwhile.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...
