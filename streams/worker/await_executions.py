"""Waiting for executions to end: one question to the log for all that are waited for."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice

from streams.errors import Unavailable
from streams.events.model import Event
from streams.log.port import Families

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
ASKED_AT_ONCE = 1000
_log = logging.getLogger(__name__)


class Endings:
    """Asks the log while somebody waits: often when there is news, less while there is none."""

    def __init__(self, log: Families) -> None:
        self._log = log
        self._waiting: dict[asyncio.Future[Event], tuple[int, ...]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()

    async def first_of(self, *execution_ids: int) -> Event:
        """Wait until one of these has ended, and return the event that ended it.

        Where several have, the first that is named counts.
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
        """Ask until nobody waits any more."""
        pause, loop = FIRST_PAUSE_S, asyncio.get_running_loop()
        while self._waiting:
            self._stirred.clear()
            began = loop.time()
            if await self._told():
                pause = FIRST_PAUSE_S
            # A log that is slow to answer is asked less often.
            rest = max(pause, 4 * (loop.time() - began))
            pause = min(LONGEST_PAUSE_S, pause * 1.5)
            try:
                async with asyncio.timeout(rest):
                    await self._stirred.wait()
            except TimeoutError:
                continue
            pause = FIRST_PAUSE_S
            await asyncio.sleep(FIRST_PAUSE_S)  # others may come; and nothing ends that soon

    async def _told(self) -> bool:
        """Ask once, and tell those whose execution has ended; say whether there were any."""
        found: dict[int, Event] = {}
        wanted = iter({one for ids in self._waiting.values() for one in ids})
        try:
            while some := list(islice(wanted, ASKED_AT_ONCE)):
                found.update(await self._log.endings(some))
        except Unavailable as error:
            _log.warning("cannot see what has ended: %s; asking again", error)
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
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
