"""The roots that are projected, and how many events each has: what a rebuild has to fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import asyncpg

from streams.events.model import Root
from streams.log.port import EventStore, Frontier
from streams.postgres import queries, translated
from streams.projector.port import ProjectionsUnavailable
from streams.projector.views import ROOTS

query = queries("streams.projector")
BEFORE_ALL = -(2**63)


class RootPlace(NamedTuple):
    """A root, and its last place."""

    root: Root
    seq: int


class RootTotals(NamedTuple):
    """How much there is to fold."""

    roots: int
    events: int


class RootHeads(Protocol):
    """Lists the projected roots of the log; both methods raise Unavailable if it is down."""

    async def totals(self) -> RootTotals:
        """Return how many roots and events there are."""
        ...

    async def page(self, *, after_id: int, limit: int) -> Sequence[RootPlace]:
        """Return the next roots in order of their ids."""
        ...


class PostgresRootHeads:
    """Reads the heads of the log; `only_id` limits it to one root, `types` to kinds of roots."""

    def __init__(
        self, pool: asyncpg.Pool, only_id: int | None = None, types: Sequence[str] = ROOTS
    ) -> None:
        self._pool, self._only_id, self._types = pool, only_id, types

    async def totals(self) -> RootTotals:
        """Return how many roots and events there are."""
        with translated(ProjectionsUnavailable, "read the heads of the log"):
            row = await self._pool.fetchrow(query("root_totals"), self._types, self._only_id)
        assert row is not None, "an aggregate has one row"
        return RootTotals(row["roots"], row["events"])

    async def page(self, *, after_id: int, limit: int) -> Sequence[RootPlace]:
        """Return the next roots in order of their ids."""
        with translated(ProjectionsUnavailable, "read the heads of the log"):
            rows = await self._pool.fetch(
                query("root_page"), self._types, after_id, self._only_id, limit
            )
        return [RootPlace(Root(row["root_type"], row["root_id"]), row["seq"]) for row in rows]


class ScannedRootHeads:
    """Finds the roots by reading a whole log: for logs in memory."""

    def __init__(
        self, log: EventStore, only_id: int | None = None, types: Sequence[str] = ROOTS
    ) -> None:
        self._log, self._only_id, self._types = log, only_id, types

    async def totals(self) -> RootTotals:
        """Return how many roots and events there are."""
        heads = await self._heads()
        return RootTotals(len(heads), sum(heads.values()))

    async def page(self, *, after_id: int, limit: int) -> Sequence[RootPlace]:
        """Return the next roots in order of their ids."""
        heads = sorted((await self._heads()).items(), key=lambda item: item[0].id)
        return [RootPlace(*item) for item in heads if item[0].id > after_id][:limit]

    async def _heads(self) -> dict[Root, int]:
        heads: dict[Root, int] = {}
        frontier = Frontier()
        while True:
            events, frontier = await self._log.read_log(frontier)
            if not events:
                return heads
            for one in events:
                if one.root.type in self._types and self._only_id in (None, one.root.id):
                    heads[one.root] = max(heads.get(one.root, 0), one.seq)
