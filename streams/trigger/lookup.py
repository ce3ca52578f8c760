"""Queries of the ledger: results of records, and missing offsets."""

from __future__ import annotations

import asyncpg

from streams.log.errors import LogUnavailable
from streams.postgres import queries, translated
from streams.trigger.port import Entered, Origin

query = queries("streams.trigger")

Range = tuple[int, int]
"""Offsets from the first up to, excluding, the second."""


class LedgerReader:
    """Reads the ledger."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def find(self, origin: Origin) -> Entered | None:
        """Return the result of a record; None while it is not processed."""
        place = (origin.topic_id, origin.partition, origin.offset, origin.reader)
        rows = await self._fetch("find_record", *place)
        return Entered(origin, **dict(rows[0])) if rows else None

    async def missing(
        self, topic_id: str, partition: int, within: Range, reader: str = ""
    ) -> list[Range]:
        """Return the ranges of offsets without a row of the reader."""
        rows = await self._fetch("missing_ranges", topic_id, partition, *within, reader)
        return [(row["first"], row["until"]) for row in rows]

    async def count(
        self, topic_id: str, partition: int, within: Range, reader: str = ""
    ) -> tuple[int, int]:
        """Return how many rows of the reader are within, and how many beyond the range."""
        (row,) = await self._fetch("count_rows", topic_id, partition, *within, reader)
        return row["entered"], row["beyond"]

    async def next_offset(self, reader: str, topic_id: str, partition: int) -> int | None:
        """Return the offset after the reader's last record of a partition; None without any."""
        (row,) = await self._fetch("last_offset", topic_id, partition, reader)
        return None if row["last"] is None else row["last"] + 1

    async def _fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "read the ledger of triggers"):
            return list(await self._pool.fetch(query(name), *arguments))
