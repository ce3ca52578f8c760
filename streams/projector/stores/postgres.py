"""Projections in Postgres: the reference adapter, with a schema of its own in any database."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from streams.payload.port import Scope
from streams.postgres import queries, translated
from streams.projector.stores.port import ErasedRecords, Pagination, ProjectionStoreUnavailable
from streams.projector.stores.records import SealedRecord

query = queries("streams.projector.stores")


class PostgresRecords:
    """Stores records in the schema `noetl_projections`, which it creates when it first writes."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool, self._exists = pool, False

    async def write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        """Delete and write in one transaction."""
        with translated(ProjectionStoreUnavailable, "write projections"):
            is_there = await self._is_there()
            async with self._pool.acquire() as connection, connection.transaction():
                if not is_there:
                    await connection.execute(query("postgres_create"))
                if erased is not None:
                    await connection.execute(query("postgres_delete"), *erased)
                await connection.executemany(query("postgres_write"), records)

    async def read(self, projection_ids: Sequence[str]) -> Sequence[SealedRecord]:
        """Return the records that exist."""
        return await self._records("postgres_read", list(projection_ids))

    async def of_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[SealedRecord]:
        """Return the records of a type that executions have."""
        return await self._records("postgres_of_executions", list(execution_ids), projection_type)

    async def page(
        self, scope: Scope, projection_type: str, labels: Sequence[str], page: Pagination
    ) -> Sequence[SealedRecord]:
        """Return records that have all labels."""
        place, after_id = page.after or (None, None)
        return await self._records(
            "postgres_page",
            scope.tenant_id,
            scope.organization_id,
            projection_type,
            list(labels),
            place,
            after_id,
            page.limit,
        )

    async def _records(self, name: str, *arguments: object) -> list[SealedRecord]:
        with translated(ProjectionStoreUnavailable, "read projections"):
            if not await self._is_there():
                return []
            return [SealedRecord(*row) for row in await self._pool.fetch(query(name), *arguments)]

    async def _is_there(self) -> bool:
        self._exists = self._exists or await self._pool.fetchval(query("postgres_exists"))
        return self._exists
