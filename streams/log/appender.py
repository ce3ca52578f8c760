"""Group commit without a timer: one call at a time carries all that gathered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from streams.envelope.catalogue import catalogue
from streams.envelope.codec import Codec
from streams.envelope.locator import Locator, parse
from streams.envelope.model import NewEvent
from streams.envelope.seal import Sealed, seal
from streams.errors import Refused
from streams.log.answers import check_batch, receipt
from streams.log.errors import BadBatch, LogUnavailable
from streams.log.port import Receipt
from streams.log.rows import new_event_row

APPEND = "SELECT * FROM noetl.append($1)"
MAX_CALL_EVENTS = 500
CONNECTION_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what a call gets while the goodbye of the server is read
    asyncpg.OperatorInterventionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)

_NOT_MIGRATED = (
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedFunctionError,
    asyncpg.UndefinedObjectError,
    asyncpg.UndefinedTableError,
)


@dataclass(slots=True)
class _Waiting:
    batch: Sequence[Sealed]
    answer: asyncio.Future[Receipt]


class Appender:
    """Appends batches through one connection of its own.

    Start it once per process and share it: the more callers, the fewer commits. A lost
    connection is opened again and the call repeated, which is safe because of the
    idempotency keys; after `patience_s` without a database callers get LogUnavailable.
    """

    def __init__(
        self,
        dsn: str,
        *,
        codec: Codec,
        take_ids: Callable[[int], Sequence[int]],
        producer: str,
        patience_s: float = 30.0,
    ) -> None:
        if not isinstance(parse(producer), Locator):
            raise BadBatch(f"producer {producer!r} is not a resource locator")
        self._dsn, self._codec, self._take_ids = dsn, codec, take_ids
        self._producer, self._patience_s = producer, patience_s
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._connection: asyncpg.Connection | None = None
        self._call: Any = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Appender:
        self._task = asyncio.create_task(self._run(), name="appender")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is waiting, then stop."""
        task, self._task = self._task, None
        self._wake.set()
        if task is not None:
            await task
        await self._disconnect()

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append `batch` as a whole or not at all, and return once it is durable."""
        ids = self._take_ids(len(batch))
        sealed = [self._seal(event, event_id) for event, event_id in zip(batch, ids, strict=True)]
        check_batch(sealed)
        if self._task is None:
            raise LogUnavailable("the appender is not running; start it with `async with`")
        waiting = _Waiting(sealed, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.answer

    def _seal(self, event: NewEvent, event_id: int) -> Sealed:
        return seal(
            event,
            event_id=event_id,
            producer=self._producer,
            codec=self._codec,
            catalogue=catalogue(),
        )

    async def _run(self) -> None:
        while self._task is not None or self._waiting:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                # Callers that are ready right now still join this call.
                await asyncio.sleep(0)
                await self._send(self._take())

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        count = 0
        while self._waiting and (not taken or count < MAX_CALL_EVENTS):
            waiting = self._waiting.popleft()
            if not waiting.answer.cancelled():
                taken.append(waiting)
                count += len(waiting.batch)
        return taken

    async def _send(self, taken: list[_Waiting]) -> None:
        try:
            answers = await self._execute([waiting.batch for waiting in taken])
        except asyncpg.PostgresError as error:
            await self._blame(taken, error)
        except Exception as error:  # noqa: BLE001 - every caller must get an answer
            for waiting in taken:
                _fail(waiting, error)
        else:
            for waiting, rows in zip(taken, answers, strict=True):
                _resolve(waiting, rows)

    async def _blame(self, taken: list[_Waiting], error: asyncpg.PostgresError) -> None:
        """Find whose batch the database cannot take, so that no stranger is refused with it."""
        if len(taken) > 1:
            for waiting in taken:
                await self._send([waiting])
            return
        _fail(taken[0], _as_refusal(error))

    async def _execute(self, batches: Sequence[Sequence[Sealed]]) -> list[list[Any]]:
        rows = [
            new_event_row(sealed, number)
            for number, batch in enumerate(batches)
            for sealed in batch
        ]
        if not rows:
            return []
        answers: list[list[Any]] = [[] for _ in batches]
        for row in await self._fetch(rows):
            answers[row["batch"]].append(row)
        return answers

    async def _fetch(self, rows: list[Any]) -> list[Any]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        pause = 0.05
        while True:
            try:
                if self._call is None:
                    await self._connect()
                return list(await self._call.fetch(rows, timeout=self._patience_s))
            except CONNECTION_LOST as error:
                await self._disconnect()
                if loop.time() + pause > deadline:
                    raise LogUnavailable(
                        f"Postgres has not answered for {self._patience_s:.0f} s "
                        f"({error or type(error).__name__}); the append may be repeated"
                    ) from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)

    async def _connect(self) -> None:
        self._connection = await asyncpg.connect(
            self._dsn, timeout=5, server_settings={"application_name": "streams-appender"}
        )
        self._call = await self._connection.prepare(APPEND)

    async def _disconnect(self) -> None:
        connection, self._connection, self._call = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(*CONNECTION_LOST, TimeoutError):
                await connection.close(timeout=1)


def _resolve(waiting: _Waiting, rows: Sequence[Any]) -> None:
    if waiting.answer.done():
        return
    try:
        waiting.answer.set_result(receipt(waiting.batch, rows))
    except Refused as error:
        waiting.answer.set_exception(error)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)


def _as_refusal(error: asyncpg.PostgresError) -> Exception:
    if isinstance(error, asyncpg.CheckViolationError) and "no partition" in str(error):
        return LogUnavailable(f"{error}; run `streams migrate`, which makes partitions ahead")
    if isinstance(error, _NOT_MIGRATED):
        return LogUnavailable(f"{error}; run `streams migrate`")
    if isinstance(error, (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError)):
        return BadBatch(f"the database cannot take the batch: {error}")
    return LogUnavailable(f"the database failed: {error}")
