"""The tier `db`: a Postgres table, for queries with SQL."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from streams.events.model import PayloadRef
from streams.postgres import translated
from streams.results.copies.port import Copy, CopyFailed

_T = TypeVar("_T")
# `json` and not `jsonb`: it preserves the text, and so the digest.
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
# An escape after an even number of backslashes, so that it is one.
_NUL, _INSTEAD = (re.compile(rf"(?<!\\)((?:\\\\)*)\\u{code}") for code in ("0000", "fffd"))


class PostgresTier:
    """Rows of `noetl.result_data`, with the result as a `json` column.

    Postgres text cannot hold NUL, so a row has an escaped U+FFFD instead: results are never
    written with that escape, so it can be converted back.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def put(self, copy: Copy) -> None:
        """Write a row."""
        names = (copy.uri, copy.execution_id, copy.step, copy.task, copy.payload.uri)
        data = _without_nul(copy.data.decode())
        await self._ask(self._pool.execute, _PUT, *names, data, copy.expires_at)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None if there is no row."""
        found: str | None = await self._ask(self._pool.fetchval, _GET, ref.uri)
        return None if found is None else _with_nul(found).encode()

    async def delete(self, ref: PayloadRef) -> None:
        """Delete the rows of this payload."""
        await self._ask(self._pool.execute, _DELETE, ref.uri)

    async def sweep(self) -> None:
        """Delete rows past their time to live; the projector deletes other expired ones."""
        await self._ask(self._pool.execute, _SWEEP)

    async def _ask(self, call: Callable[..., Awaitable[_T]], sql: str, *values: object) -> _T:
        with translated(CopyFailed, "use noetl.result_data"):
            return await call(sql, *values)


def _without_nul(text: str) -> str:
    return _NUL.sub(r"\1\\ufffd", text) if r"\u0000" in text else text


def _with_nul(text: str) -> str:
    return _INSTEAD.sub(r"\1\\u0000", text) if r"\ufffd" in text else text
