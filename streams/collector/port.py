"""Ports of the collector."""

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
"""Ids of results to treat as expired, by root."""
NO_ENDS: Ends = MappingProxyType({})


class Snapshot(Protocol):
    """The log at one point in time."""

    @property
    def now(self) -> datetime:
        """The database's time, taken before the snapshot."""
        ...

    def holdings(
        self, execution_ids: Collection[int] | None = None, ended: Ends = NO_ENDS
    ) -> AsyncIterator[RootHolding]:
        """Yield the holdings of all roots, or of `execution_ids`, that reference anything.

        The results in `ended` count as expired.
        """
        ...

    async def holding(self, execution_id: int, ended: Ends = NO_ENDS) -> RootHolding | None:
        """Return the holding of one execution; None if it references nothing."""
        ...

    async def perhaps_due(self, grace: timedelta) -> Collection[int]:
        """Return executions whose results may be due, without scanning the log.

        Based on projections: it may return too many, and temporarily too few.
        """
        ...

    async def open_since(self) -> Mapping[str, datetime]:
        """Return the start of the oldest open execution, by organization's folder."""
        ...

    async def workflows_ended(self, execution_ids: Collection[int]) -> Mapping[int, datetime]:
        """Return the end of the outermost execution around each of these, if it ended."""
        ...


class CollectorLog(Protocol):
    """The collector's view of the log, and its stored links between payloads."""

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Lock out other collectors of this log.

        Raises:
            CollectorBusy: another one is running.
        """
        ...

    async def log_id(self) -> str:
        """Return the unique id of this log."""
        ...

    async def swept_ago(self) -> timedelta | None:
        """Return the time since the last sweep; None if there was none."""
        ...

    async def mark_swept(self) -> None:
        """Record a sweep at the current time."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Open a snapshot of the log.

        Raises:
            LogUnavailable: Postgres cannot be reached.
        """
        ...

    async def check_lock(self) -> None:
        """Check that the lock is still held.

        Raises:
            LockLost: it is not.
        """
        ...

    async def links(self, keys: Collection[str]) -> Mapping[str, Names]:
        """Return the stored links of payloads."""
        ...

    async def store_links(self, links: Mapping[str, Names]) -> None:
        """Store the links of payloads."""
        ...

    async def delete_links(self, keys: Collection[str]) -> None:
        """Delete the links of deleted payloads."""
        ...


@dataclass(frozen=True, slots=True)
class CollectorPorts:
    """The ports of the collector."""

    ledger: CollectorLog
    log: EventStore
    shelves: Shelves
