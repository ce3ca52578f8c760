"""What the collector needs from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Protocol

from streams.collector.core import Names, RootHolding
from streams.log.port import EventStore
from streams.payload.objects.port import Shelves

Ends = Mapping[int, Collection[int]]
"""Results that are to expire, by their roots."""
NO_ENDS: Ends = MappingProxyType({})


class Snapshot(Protocol):
    """The whole log at one moment."""

    @property
    def now(self) -> datetime:
        """The database's time, taken before the moment."""
        ...

    def holdings(
        self, execution_ids: Collection[int] | None = None, ended: Ends = NO_ENDS
    ) -> AsyncIterator[RootHolding]:
        """Yield what each root, or each of these, holds that names payloads or results.

        The results in `ended` count as expired though the log does not say so.
        """
        ...

    async def holding(self, execution_id: int, ended: Ends = NO_ENDS) -> RootHolding | None:
        """Return what one execution holds; None where it names no payload and no result."""
        ...

    async def perhaps_due(self, grace: timedelta) -> Collection[int]:
        """Return executions whose results may have come to their end, found without reading all.

        It knows what was projected, so it may name too many, and for a while too few.
        """
        ...

    async def open_since(self) -> Mapping[str, datetime]:
        """Return, by organization's folder, when the oldest execution began that has not ended."""
        ...

    async def workflows_ended(self, execution_ids: Collection[int]) -> Mapping[int, datetime]:
        """Return when the outermost execution around each of these ended, where it has."""
        ...


class CollectorLog(Protocol):
    """The log as the collector reads it, and what it remembers of payloads it has read."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Be the only collector of this log meanwhile.

        Raises:
            CollectorBusy: another one is at work.
        """
        ...

    async def log_id(self) -> str:
        """Return the name of this log, which no other has."""
        ...

    async def swept_ago(self) -> timedelta | None:
        """Return how long ago the objects were last swept; None if they never were."""
        ...

    async def mark_swept(self) -> None:
        """Keep that the objects were swept now."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Look at the log; nothing in it changes meanwhile.

        Raises:
            LogUnavailable: Postgres cannot be reached.
        """
        ...

    async def check_alone(self) -> None:
        """Make sure that this is still the only collector.

        Raises:
            LockLost: the lock is gone.
        """
        ...

    async def links(self, keys: Collection[str]) -> Mapping[str, Names]:
        """Return the keys that payloads name, of those that were read before."""
        ...

    async def remember(self, links: Mapping[str, Names]) -> None:
        """Keep what payloads name."""
        ...

    async def forget(self, keys: Collection[str]) -> None:
        """Drop what was kept of payloads that are gone."""
        ...


@dataclass(frozen=True, slots=True)
class CollectorPorts:
    """Everything the collector uses."""

    ledger: CollectorLog
    log: EventStore
    shelves: Shelves
