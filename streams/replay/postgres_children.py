"""Children of executions, from the log in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from streams.ids import siblings_of
from streams.log.errors import LogUnavailable
from streams.postgres import queries, translated

query = queries("streams.replay")


class PostgresChildren:
    """Reads through a pool of the duty `read`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def children_of(self, execution_id: int) -> Sequence[int]:
        """Return the ids of its direct children, in order."""
        lowest, highest = siblings_of(execution_id)
        with translated(LogUnavailable, "read the log"):
            rows = await self._pool.fetch(query("children"), lowest, highest, execution_id)
        return [row["root_id"] for row in rows]
