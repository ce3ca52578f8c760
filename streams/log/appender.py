"""Group commit without a timer: a call carries all that gathered while others were under way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import asyncpg

from streams.events.catalogue import catalogue
from streams.events.codec import Codec
from streams.events.model import NewEvent
from streams.events.seal import Sealed
from streams.events.sealer import Sealer
from streams.log.append_connection import Lane
from streams.log.errors import BadBatch, LogUnavailable
from streams.log.port import Receipt
from streams.log.receipts import check_batch, receipt

LANES = 2
MAX_CALL_EVENTS = 500
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
    """Appends batches through a few connections of its own, by default two.

    Start it once per process and share it: the more callers, the fewer commits. While the
    database works on one call, callers seal what the next will carry. Whoever needs one
    append to stand before another awaits the first.

    A lost connection is opened again and the call repeated, which is safe because of the
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
        lanes: int = LANES,
    ) -> None:
        self._take_ids = take_ids
        self._seal = Sealer(producer=producer, codec=codec, catalogue=catalogue())
        self._waiting: deque[_Waiting] = deque()
        self._wake = asyncio.Event()
        self._lanes = [Lane(dsn, patience_s, self._seal.native) for _ in range(lanes)]
        self._tasks: list[asyncio.Task[None]] = []
        self._open = False

    async def __aenter__(self) -> Appender:
        self._open = True
        self._tasks = [
            asyncio.create_task(self._run(lane), name="appender") for lane in self._lanes
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send what is waiting, then stop."""
        self._open = False
        self._wake.set()
        await asyncio.gather(*self._tasks)

    @property
    def sealer(self) -> str:
        """What seals events here: `native` or `python`."""
        return "python" if self._seal.native is None else "native"

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append `batch` as a whole or not at all, and return once it is durable."""
        ids = self._take_ids(len(batch))
        sealed = [self._seal(event, event_id) for event, event_id in zip(batch, ids, strict=True)]
        check_batch(sealed)
        if not self._open:
            raise LogUnavailable("the appender is not running; start it with `async with`")
        waiting = _Waiting(sealed, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.answer

    async def _run(self, lane: Lane) -> None:
        while self._open or self._waiting:
            if taken := self._take():
                lane.is_busy = True
                await _send(lane, taken)
                lane.is_busy = False
            elif self._open:
                self._wake.clear()
                await self._wake.wait()
        await lane.close()

    def _take(self) -> list[_Waiting]:
        """Take what waits; half of it where another lane has nothing to do."""
        idle = sum(1 for lane in self._lanes if not lane.is_busy)
        share = -(-len(self._waiting) // max(idle, 1))
        taken: list[_Waiting] = []
        count = 0
        while self._waiting and len(taken) < share and count < MAX_CALL_EVENTS:
            waiting = self._waiting.popleft()
            if not waiting.answer.cancelled():
                taken.append(waiting)
                count += len(waiting.batch)
        return taken


async def _send(lane: Lane, taken: list[_Waiting]) -> None:
    try:
        answers = await _execute(lane, [waiting.batch for waiting in taken])
    except asyncpg.PostgresError as error:
        await _blame(lane, taken, error)
    except Exception as error:  # noqa: BLE001 - every caller must get an answer
        for waiting in taken:
            _fail(waiting, error)
    else:
        for waiting, rows in zip(taken, answers, strict=True):
            _resolve(waiting, rows)


async def _blame(lane: Lane, taken: list[_Waiting], error: asyncpg.PostgresError) -> None:
    """Find whose batch the database cannot take, so that no stranger is refused with it."""
    if len(taken) > 1:
        for waiting in taken:
            await _send(lane, [waiting])
        return
    _fail(taken[0], _as_refusal(error))


async def _execute(lane: Lane, batches: Sequence[Sequence[Sealed]]) -> list[list[asyncpg.Record]]:
    answers: list[list[asyncpg.Record]] = [[] for _ in batches]
    for row in await lane.call(batches):
        answers[row["batch"]].append(row)
    return answers


def _resolve(waiting: _Waiting, rows: Sequence[asyncpg.Record]) -> None:
    if waiting.answer.done():
        return
    try:
        waiting.answer.set_result(receipt(waiting.batch, rows))
    except Exception as error:  # noqa: BLE001 - whoever waits must get the error, also of a bug
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
