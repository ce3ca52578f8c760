"""Group commit of appends: a call sends every batch queued during the previous calls."""

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
from streams.log.append_counts import AppendCounts
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
class _QueuedBatch:
    batch: Sequence[Sealed]
    answer: asyncio.Future[Receipt]


class Appender:
    """Appends batches through its own connections, by default two.

    Share one per process: more callers, fewer commits per event. Concurrent appends are not
    ordered; await one before the next if order matters.

    A lost connection is reopened and the call retried, which the idempotency keys make safe;
    after `give_up_after_s` without a database callers get LogUnavailable.
    """

    def __init__(
        self,
        dsn: str,
        *,
        codec: Codec,
        take_ids: Callable[[int], Sequence[int]],
        producer: str,
        give_up_after_s: float = 30.0,
        lanes: int = LANES,
    ) -> None:
        self._take_ids, self.counts = take_ids, AppendCounts()
        self._seal = Sealer(producer=producer, codec=codec, catalogue=catalogue())
        self._queue: deque[_QueuedBatch] = deque()
        self._wake = asyncio.Event()
        self._lanes = [Lane(dsn, give_up_after_s, self._seal.native) for _ in range(lanes)]
        self._tasks: list[asyncio.Task[None]] = []
        self._open = False

    async def __aenter__(self) -> Appender:
        self._open = True
        self._tasks = [
            asyncio.create_task(self._run(lane), name="appender") for lane in self._lanes
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Send queued batches, then stop."""
        self._open = False
        self._wake.set()
        await asyncio.gather(*self._tasks)

    @property
    def sealer(self) -> str:
        """The implementation that seals events: `native` or `python`."""
        return "python" if self._seal.native is None else "native"

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append `batch` atomically, and return once it is durable."""
        ids = self._take_ids(len(batch))
        sealed = [self._seal(event, event_id) for event, event_id in zip(batch, ids, strict=True)]
        check_batch(sealed)
        if not self._open:
            raise LogUnavailable("the appender is not running; start it with `async with`")
        queued = _QueuedBatch(sealed, asyncio.get_running_loop().create_future())
        self._queue.append(queued)
        self._wake.set()
        answer = await queued.answer
        self.counts.add(batch, answer)
        return answer

    async def _run(self, lane: Lane) -> None:
        while self._open or self._queue:
            if taken := self._take():
                lane.is_busy = True
                await _send(lane, taken)
                lane.is_busy = False
            elif self._open:
                self._wake.clear()
                await self._wake.wait()
        await lane.close()

    def _take(self) -> list[_QueuedBatch]:
        """Take queued batches; only a share of them if other lanes are idle."""
        idle = sum(1 for lane in self._lanes if not lane.is_busy)
        share = -(-len(self._queue) // max(idle, 1))
        taken: list[_QueuedBatch] = []
        count = 0
        while self._queue and len(taken) < share and count < MAX_CALL_EVENTS:
            queued = self._queue.popleft()
            if not queued.answer.cancelled():
                taken.append(queued)
                count += len(queued.batch)
        return taken


async def _send(lane: Lane, taken: list[_QueuedBatch]) -> None:
    try:
        responses = await _execute(lane, [queued.batch for queued in taken])
    except asyncpg.PostgresError as error:
        await _send_one_by_one(lane, taken, error)
    except Exception as error:  # noqa: BLE001 - every caller must get a response
        for queued in taken:
            _fail(queued, error)
    else:
        for queued, rows in zip(taken, responses, strict=True):
            _resolve(queued, rows)


async def _send_one_by_one(
    lane: Lane, taken: list[_QueuedBatch], error: asyncpg.PostgresError
) -> None:
    """Retry the batches one by one, so that only the rejected one fails."""
    if len(taken) > 1:
        for queued in taken:
            await _send(lane, [queued])
        return
    _fail(taken[0], _as_refusal(error))


async def _execute(lane: Lane, batches: Sequence[Sequence[Sealed]]) -> list[list[asyncpg.Record]]:
    responses: list[list[asyncpg.Record]] = [[] for _ in batches]
    for row in await lane.call(batches):
        responses[row["batch"]].append(row)
    return responses


def _resolve(queued: _QueuedBatch, rows: Sequence[asyncpg.Record]) -> None:
    if queued.answer.done():
        return
    try:
        queued.answer.set_result(receipt(queued.batch, rows))
    except Exception as error:  # noqa: BLE001 - the caller must get the error, even of a bug
        queued.answer.set_exception(error)


def _fail(queued: _QueuedBatch, error: Exception) -> None:
    if not queued.answer.done():
        queued.answer.set_exception(error)


def _as_refusal(error: asyncpg.PostgresError) -> Exception:
    if isinstance(error, asyncpg.CheckViolationError) and "no partition" in str(error):
        return LogUnavailable(f"{error}; run `streams migrate`, which creates partitions ahead")
    if isinstance(error, _NOT_MIGRATED):
        return LogUnavailable(f"{error}; run `streams migrate`")
    if isinstance(error, (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError)):
        return BadBatch(f"the database rejects the batch: {error}")
    return LogUnavailable(f"the database failed: {error}")
