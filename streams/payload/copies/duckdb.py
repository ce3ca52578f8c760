"""The tier `duckdb`: a table in a DuckDB file of this process, to be asked with SQL."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from streams.envelope.model import PayloadRef
from streams.payload.copies.port import Copy, CopyFailed

_TABLE = """
CREATE TABLE IF NOT EXISTS results (
  ref text PRIMARY KEY, execution_id bigint, step text, task text, payload text, data text
)
"""
_PUT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)"
_GET = "SELECT data FROM results WHERE payload = ? LIMIT 1"
_DELETE = "DELETE FROM results WHERE payload = ?"


class DuckdbTier:
    """Rows of results. DuckDB lets one process have a file, so each has its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._session: Any = None

    async def put(self, copy: Copy) -> None:
        """Write a row; its data is JSON text, which DuckDB's `->` reads."""
        names = (copy.uri, copy.execution_id, copy.step, copy.task, copy.payload.uri)
        await self._ask(_PUT, *names, copy.data.decode())

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None where there is no row."""
        row = await self._ask(_GET, ref.uri)
        return None if row is None else str(row[0]).encode()

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the rows that have this data."""
        await self._ask(_DELETE, ref.uri)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    async def _ask(self, sql: str, *values: object) -> Any:
        return await asyncio.to_thread(self._answer, sql, values)

    def _answer(self, sql: str, values: tuple[object, ...]) -> Any:
        import duckdb  # thirty megabytes, for workers that use it

        with self._lock:
            try:
                if self._session is None:
                    self._path.parent.mkdir(parents=True, exist_ok=True)
                    self._session = duckdb.connect(str(self._path))
                    self._session.execute(_TABLE)
                answer = self._session.execute(sql, list(values))
                return answer.fetchone() if sql is _GET else None
            except (duckdb.Error, OSError, UnicodeDecodeError) as error:
                raise CopyFailed(f"{self._path}: {error}") from error
