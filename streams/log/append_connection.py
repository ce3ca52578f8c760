"""A reconnecting connection for appends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import asyncpg

from streams.clock import SystemClock
from streams.events.native import NativeModule
from streams.events.seal import Sealed
from streams.log.errors import LogUnavailable
from streams.log.raw_rows import RawRows
from streams.log.rows import new_event_rows
from streams.postgres import CONNECTION_LOST
from streams.retry import retry_until

_LONGEST_PAUSE_S = 1.0
APPEND = "SELECT * FROM noetl.append($1)"


class Lane:
    """Calls `noetl.append`, one call at a time."""

    def __init__(
        self, dsn: str, give_up_after_s: float, native: NativeModule | None = None
    ) -> None:
        self._dsn, self._give_up_after_s, self._native = dsn, give_up_after_s, native
        self._clock = SystemClock()
        self.is_busy = False
        self._rows: Callable[[Sequence[Sequence[Sealed]]], object] = new_event_rows
        self._connection: asyncpg.Connection | None = None
        self._append: asyncpg.PreparedStatement | None = None

    async def call(self, batches: Sequence[Sequence[Sealed]]) -> list[asyncpg.Record]:
        """Append `batches` and return the rows of the response; retries on a lost connection.

        Raises:
            LogUnavailable: no connection, or no response, within `give_up_after_s`.
            asyncpg.PostgresError: the database rejects the rows.
        """
        deadline = self._clock.monotonic() + self._give_up_after_s
        return await retry_until(
            lambda: self._attempt(batches),
            clock=self._clock,
            deadline=deadline,
            longest_pause_s=_LONGEST_PAUSE_S,
        )

    async def _attempt(self, batches: Sequence[Sequence[Sealed]]) -> list[asyncpg.Record]:
        try:
            append = self._append or await self._connect()
            rows = self._rows(batches)
            return list(await append.fetch(rows, timeout=self._give_up_after_s))
        except CONNECTION_LOST as error:
            self._terminate()
            raise LogUnavailable(
                f"Postgres has not responded for {self._give_up_after_s:.0f} s "
                f"({error or type(error).__name__}); the append may be retried"
            ) from error

    async def close(self) -> None:
        """Close the connection; the next call opens another."""
        connection, self._connection, self._append = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(*CONNECTION_LOST):
                await connection.close(timeout=1)

    def _terminate(self) -> None:
        """Drop the connection; closing it would wait for a server that may be paused."""
        connection, self._connection, self._append = self._connection, None, None
        if connection is not None:
            connection.terminate()

    async def _connect(self) -> asyncpg.PreparedStatement:
        self._connection = await asyncpg.connect(
            self._dsn, timeout=5, server_settings={"application_name": "streams-appender"}
        )
        self._rows = new_event_rows
        if self._native is not None:
            self._rows = await RawRows.open(self._native, self._connection) or new_event_rows
        self._append = await self._connection.prepare(APPEND)
        return self._append
