"""The tier `db`: a table in Postgres, to be asked with SQL."""

from __future__ import annotations

from typing import Any

import asyncpg

from streams.envelope.model import PayloadRef
from streams.payload.copies.port import Copy, CopyFailed

# `json` and not `jsonb`: it keeps the text, and so the digest, as it was.
_PUT = """
INSERT INTO noetl.result_data
  (ref, execution_id, step_name, task_label, payload_uri, data, expires_at)
VALUES ($1, $2, $3, $4, $5, $6::json, $7)
ON CONFLICT (ref) DO UPDATE
SET data = excluded.data, payload_uri = excluded.payload_uri, expires_at = excluded.expires_at
"""
_GET = "SELECT data::text FROM noetl.result_data WHERE payload_uri = $1 LIMIT 1"
_DELETE = "DELETE FROM noetl.result_data WHERE payload_uri = $1"
_SWEEP = "DELETE FROM noetl.result_data WHERE expires_at <= now()"


class PostgresTier:
    """Rows of `noetl.result_data`, with the result as a `json` column."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def put(self, copy: Copy) -> None:
        """Write a row."""
        names = (copy.uri, copy.execution_id, copy.step, copy.task, copy.payload.uri)
        await self._ask(self._pool.execute, _PUT, *names, copy.data.decode(), copy.expires_at)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None where there is no row."""
        found: str | None = await self._ask(self._pool.fetchval, _GET, ref.uri)
        return None if found is None else found.encode()

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the rows that have this data."""
        await self._ask(self._pool.execute, _DELETE, ref.uri)

    async def sweep(self) -> None:
        """Remove the rows whose time is over; the projector removes those that end otherwise."""
        await self._ask(self._pool.execute, _SWEEP)

    async def _ask(self, call: Any, sql: str, *values: object) -> Any:
        try:
            return await call(sql, *values)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            raise CopyFailed(f"noetl.result_data: {error!r}") from error
