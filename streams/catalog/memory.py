"""Catalog events by full scan of a log, for tests and the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from streams.catalog.core import path_of
from streams.catalog.errors import UnknownVersion
from streams.events.model import Event
from streams.log.port import EventStore, Frontier
from streams.payload.port import Scope
from streams.playbook.model import Playbook
from streams.subscription.model import KIND as SUBSCRIPTION


class MemoryCatalogEvents:
    """Reads the whole log each time; one process only."""

    def __init__(self, store: EventStore) -> None:
        self._store, self._lock = store, asyncio.Lock()

    async def of_path(self, scope: Scope, path: str) -> Sequence[Event]:
        """Return the catalog events of a path, oldest first."""
        return [event for event in await self.of_scope(scope) if path_of(event) == path]

    async def of_scope(self, scope: Scope) -> Sequence[Event]:
        """Return the catalog events of every path, oldest first."""
        found: list[Event] = []
        events, frontier = await self._store.read_log(Frontier())
        while events:
            found += [event for event in events if _is_of(event, scope)]
            events, frontier = await self._store.read_log(frontier)
        return found

    @asynccontextmanager
    async def lock(self, scope: Scope, path: str) -> AsyncIterator[None]:
        """Lock every path."""
        async with self._lock:
            yield


def _is_of(event: Event, scope: Scope) -> bool:
    same = (event.tenant_id, event.organization_id) == (scope.tenant_id, scope.organization_id)
    return same and event.root.type == "catalog"


class MemorySubscriptionEvents:
    """Reads the whole log each time."""

    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def all(self) -> Sequence[Event]:
        """Return the events of every subscription's root."""
        found: list[Event] = []
        events, frontier = await self._store.read_log(Frontier())
        while events:
            found += [event for event in events if event.root.type == "catalog"]
            events, frontier = await self._store.read_log(frontier)
        roots = {event.root for event in found if event.meta.get("kind") == SUBSCRIPTION}
        return [event for event in found if event.root in roots]

    async def mark(self) -> int:
        """Return how many events there are."""
        return len(await self.all())


class MemoryPlaybooks:
    """A fixed set of playbooks, without a log."""

    def __init__(self, playbooks: Mapping[tuple[int, int], Playbook]) -> None:
        self._playbooks = playbooks

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return the playbook."""
        if (catalog_id, version) not in self._playbooks:
            versions = sorted(number for key, number in self._playbooks if key == catalog_id)
            raise UnknownVersion(f"catalog {catalog_id}", version, versions)
        return self._playbooks[catalog_id, version]
