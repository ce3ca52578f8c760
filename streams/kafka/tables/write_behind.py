"""Writes tables behind their agent, and acknowledges records once their changes are durable.

A transaction takes longer than an agent's batch. Agents do not wait for it: changes of several
batches are written together, and of several changes of a key only the last.
See docs/decisions/0034-tables.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from streams.holds import Holds
from streams.kafka.feed.port import Feed, Record
from streams.retry import retry

GATHER_S = 0.2


class WriteBehind:
    """Acknowledges records of `feed` after a `flush` that began later than their handling."""

    def __init__(
        self,
        feed: Feed,
        flush: Callable[[], Awaitable[None]],
        *,
        holds: Holds,
        gather_s: float = GATHER_S,
    ) -> None:
        self._feed, self._flush, self._holds, self._gather_s = feed, flush, holds, gather_s
        self._records: list[Record] = []
        self._due = asyncio.Event()
        self._writing = asyncio.Lock()

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Acknowledge records once what was changed up to now is durable."""
        self._records.extend(records)
        self.request()

    def request(self) -> None:
        """Write soon what was changed up to now."""
        self._due.set()

    async def run(self) -> None:
        """Write until cancelled.

        Raises:
            ChangelogFailed: the changelogs cannot be written.
        """
        while True:
            await self._due.wait()
            await asyncio.sleep(self._gather_s)
            await self.write()

    async def write(self) -> None:
        """Write what changed, and acknowledge what it came from."""
        async with self._writing:
            self._due.clear()
            records, self._records = self._records, []
            await retry(self._flush, holds=self._holds)
            self._feed.acknowledge(records)
