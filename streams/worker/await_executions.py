"""Waits for executions to end: one query to the log serves all waiters."""

from __future__ import annotations

import asyncio
from itertools import islice

from streams.errors import Unavailable
from streams.events.model import Event
from streams.holds import Holds, Waiter
from streams.log.port import Families

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
ASKED_AT_ONCE = 1000


class EndedExecutions:
    """Polls the log while there are waiters, backing off while nothing ends."""

    def __init__(self, log: Families, holds: Holds | None = None) -> None:
        self._log, self._holds = log, holds or Holds()
        self._waiting: dict[asyncio.Future[Event], tuple[int, ...]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()

    async def first_of(self, *execution_ids: int) -> Event:
        """Wait until one of these executions ends, and return its last event.

        If several have ended, the first argument wins.
        """
        waiter: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = execution_ids
        self._stirred.set()
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="wait for executions")
        try:
            return await waiter
        finally:
            self._waiting.pop(waiter, None)

    async def _ask(self) -> None:
        """Poll until there are no waiters."""
        with self._holds.waiter() as log_waiter:
            await self._poll(log_waiter)

    async def _poll(self, log_waiter: Waiter) -> None:
        pause, loop = FIRST_PAUSE_S, asyncio.get_running_loop()
        while self._waiting:
            self._stirred.clear()
            began = loop.time()
            if await self._notify(log_waiter, began):
                pause = FIRST_PAUSE_S
            # A slow log is polled less often.
            rest = max(pause, 4 * (loop.time() - began))
            pause = min(LONGEST_PAUSE_S, pause * 1.5)
            try:
                async with asyncio.timeout(rest):
                    await self._stirred.wait()
            except TimeoutError:
                continue
            pause = FIRST_PAUSE_S
            await asyncio.sleep(FIRST_PAUSE_S)  # other waiters may join; nothing ends that soon

    async def _notify(self, log_waiter: Waiter, asked_at: float) -> bool:
        """Query once and wake the waiters of ended executions; return whether any had ended."""
        found: dict[int, Event] = {}
        wanted = iter({one for ids in self._waiting.values() for one in ids})
        try:
            while some := list(islice(wanted, ASKED_AT_ONCE)):
                found.update(await self._log.endings(some))
            log_waiter.answered()
        except Unavailable as error:
            log_waiter.failed(error, asked_at)
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait
            for waiter in self._waiting:
                if not waiter.done():
                    waiter.set_exception(error)
            return False
        for waiter, ids in self._waiting.items():
            end = next((found[one] for one in ids if one in found), None)
            if end is not None and not waiter.done():
                waiter.set_result(end)
        return bool(found)

    async def close(self) -> None:
        """Stop polling."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
