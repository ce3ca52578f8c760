"""The tier `duckdb`: a table in a DuckDB file of this process, for queries with SQL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from streams.clock import Clock
from streams.events.model import PayloadRef
from streams.results.copies.ends import end_of
from streams.results.copies.port import Copy, CopyFailed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_T = TypeVar("_T")
ROOM_BYTES = 2**30
LONGEST = timedelta(days=7)
"""People query this table, so its rows live longer than other copies."""
_COLUMNS = """(
  ref text PRIMARY KEY, execution_id bigint, step text, task text, payload text, data text,
  until timestamp
)"""
_OPEN = (
    f"CREATE TABLE IF NOT EXISTS results {_COLUMNS}",
    "ALTER TABLE results ADD COLUMN IF NOT EXISTS until timestamp",
)
_PUT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)"
_GET = "SELECT data FROM results WHERE payload = ? LIMIT 1"
_DELETE = "DELETE FROM results WHERE payload = ?"
_SWEEP = "DELETE FROM results WHERE until IS NULL OR until <= ?"
_LENGTH = "SELECT coalesce(sum(strlen(data)), 0) FROM results"
_KEEP = """
INSERT INTO kept SELECT * FROM results WHERE ref IN (
  SELECT ref FROM (
    SELECT ref, sum(strlen(data)) OVER (ORDER BY until DESC, ref) AS total FROM results
  ) WHERE total <= ?
)"""


class DuckdbTier:
    """Rows of results. DuckDB allows one process per file, so each has its own.

    DuckDB rarely reuses the space of deleted rows. So when a file's worth has been written, the
    half that expires last is copied to a new file and the rest dropped.
    """

    def __init__(self, path: Path, clock: Clock, room_bytes: int = ROOM_BYTES) -> None:
        self._path, self._clock, self._room = path, clock, room_bytes
        self._lock = threading.Lock()
        self._session: DuckDBPyConnection | None = None
        self._used = 0

    async def put(self, copy: Copy) -> None:
        """Write a row, unless it needs more than half of the file; its data is JSON text."""
        if len(copy.data) > self._room // 2:
            return
        names = (copy.uri, copy.execution_id, copy.step, copy.task, copy.payload.uri)
        until = _plain(end_of(copy.expires_at, self._clock.now(), LONGEST))
        await self._do(self._put, names, copy.data, until)

    async def get(self, ref: PayloadRef) -> bytes | None:
        """Return the bytes, or None if there is no row."""
        row = await self._do(_ask, _GET, ref.uri)
        return None if row is None else str(row[0]).encode()

    async def delete(self, ref: PayloadRef) -> None:
        """Delete the rows of this payload."""
        await self._do(_ask, _DELETE, ref.uri)

    async def sweep(self) -> None:
        """Delete expired rows; a missing file is not created for that."""
        if self._path.exists():
            await self._do(_ask, _SWEEP, _plain(self._clock.now()))

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            if self._session is not None:
                self._session.close()
                self._session = None

    async def _do(self, call: Callable[..., _T], *args: object) -> _T:
        return await asyncio.to_thread(self._guarded, call, *args)

    def _guarded(self, call: Callable[..., _T], *args: object) -> _T:
        import duckdb  # 30 MB, only for workers that use it

        with self._lock:
            try:
                session = self._open(duckdb.connect) if self._session is None else self._session
                return call(session, *args)
            except (duckdb.Error, OSError, UnicodeDecodeError) as error:
                raise CopyFailed(f"{self._path}: {error}") from error

    def _open(self, connect: Callable[[str], DuckDBPyConnection]) -> DuckDBPyConnection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._session = session = connect(str(self._path))
        for sql in _OPEN:
            session.execute(sql)
        self._used = self._path.stat().st_size
        return session

    def _put(
        self, session: DuckDBPyConnection, names: Sequence[object], data: bytes, until: datetime
    ) -> None:
        _ask(session, _PUT, *names, data.decode(), until)
        self._used += len(data)
        if self._used > self._room:
            self._write_anew(session)

    def _write_anew(self, session: DuckDBPyConnection) -> None:
        session.begin()
        try:
            session.execute(f"CREATE TABLE kept {_COLUMNS}")
            session.execute(_KEEP, [self._room // 2])
            session.execute("DROP TABLE results")
            session.execute("ALTER TABLE kept RENAME TO results")
            session.commit()
        except BaseException:
            session.rollback()
            raise
        session.execute("CHECKPOINT")
        row = _ask(session, _LENGTH)
        self._used = 0 if row is None else int(row[0])


def _ask(session: DuckDBPyConnection, sql: str, *values: object) -> tuple[Any, ...] | None:
    """Run a statement and return its first row."""
    row: tuple[Any, ...] | None = session.execute(sql, list(values)).fetchone()
    return row


def _plain(at: datetime) -> datetime:
    """Return a time in UTC as DuckDB's `timestamp`, which has no zone."""
    return at.replace(tzinfo=None)
