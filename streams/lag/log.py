"""Queries of the log: states of work items, and events that the mirror has not carried."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import asyncpg

from streams.kafka.work.item import WorkItem
from streams.lag.backlog import ItemState
from streams.log.errors import LogUnavailable
from streams.postgres import connecting, queries, translated
from streams.settings import Settings

MISSING_COUNT = 100_000
"""Events counted at most."""
_TIMEOUT_S = 10.0
_BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
query = queries("streams.lag")
EventPlace = tuple[int, int]
"""The root of an event and its place in it."""


@dataclass(frozen=True, slots=True)
class Passing:
    """What has not passed a hop: the time of the oldest, and how many there are."""

    oldest: datetime | None
    count: int


class LagLog:
    """The log, for reading."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def item_states(self, items: Iterable[WorkItem]) -> dict[int, ItemState]:
        """Return the states of the frames and commands of work items."""
        wanted = {one.entity_id: one for one in items}
        streams = [
            f"execution/{one.execution_id}/{one.kind}/{one.entity_id}" for one in wanted.values()
        ]
        roots = [one.execution_id for one in wanted.values()]
        with translated(LogUnavailable, "read the states of work items"):
            rows = await self._connection.fetch(query("item_states"), list(wanted), roots, streams)
        return {
            row["entity_id"]: ItemState(
                row["event_type"], row["caused_at"].replace(tzinfo=UTC), not row["terminal"]
            )
            for row in rows
        }

    async def not_mirrored(
        self, newest: Collection[EventPlace], *, since: datetime | None = None
    ) -> Passing:
        """Return what the log has after the newest of these mirrored events, and since a time."""
        after = (since or _BEGINNING).replace(tzinfo=None)
        roots, seqs = [one[0] for one in newest], [one[1] for one in newest]
        with translated(LogUnavailable, "read events that are not mirrored"):
            row = await self._connection.fetchrow(
                query("not_mirrored"), roots, seqs, MISSING_COUNT, after
            )
        oldest = row["oldest"]
        return Passing(None if oldest is None else oldest.replace(tzinfo=UTC), row["missing"])


@asynccontextmanager
async def lag_log(settings: Settings) -> AsyncIterator[LagLog]:
    """Connect to the log.

    Raises:
        LogUnavailable: Postgres does not respond.
    """
    with connecting(LogUnavailable):
        connection = await asyncpg.connect(
            settings.event_store.canonical_connection.dsn("read"),
            timeout=_TIMEOUT_S,
            command_timeout=_TIMEOUT_S,
        )
    try:
        yield LagLog(connection)
    finally:
        await connection.close()
