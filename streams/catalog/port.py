"""Values and ports of the catalog."""

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
    """The outcome of registering a playbook."""

    catalog_id: int
    version: int
    path: str
    is_new: bool = False
    """Whether this call created the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A version, without its content."""

    catalog_id: int
    version: int
    path: str
    kind: str
    content_sha256: str
    registered_at: datetime
    is_retired: bool = False
    """New executions cannot use it; running ones continue."""


class Playbooks(Protocol):
    """Returns compiled playbooks; versions are immutable, so they may be cached."""

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return the playbook.

        Raises:
            UnknownVersion: there is none.
            BadPlaybook: the registered content no longer parses.
            Unavailable: the log cannot be reached.
        """
        ...


class CatalogEvents(Protocol):
    """Reads the events of catalog roots by path."""

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

    def lock(self, scope: Scope, path: str) -> AbstractAsyncContextManager[None]:
        """Lock a path against concurrent registration.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...


class SubscriptionEvents(Protocol):
    """Reads the events of subscriptions of all tenants."""

    async def all(self) -> Sequence[Event]:
        """Return the events of every subscription's root, oldest first of each root.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def mark(self) -> int:
        """Return a number that changes with every new event of a subscription; cheap.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...
