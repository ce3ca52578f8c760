"""A watchdog that ends a process without progress, even when its event loop hangs."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time

from streams.holds import Holds, Waiter
from streams.kafka.errors import FeedUnavailable, Stalled
from streams.kafka.feed.port import Standing, Watched

LIMIT_S = 60.0
EXIT_CODE = 70
"""Exit code when the event loop hung."""


class StallTimer:
    """Measures the time of pending work without progress."""

    def __init__(self, limit_s: float, now: float) -> None:
        self._limit_s, self._since, self._progress = limit_s, now, -1

    def reset(self, now: float) -> None:
        """Restart the measurement."""
        self._since = now

    def has_progressed(self, standing: Standing, now: float) -> bool:
        """Return whether records were finished since the last call, or none is pending."""
        if standing.behind and standing.progress == self._progress:
            return False
        self._progress, self._since = standing.progress, now
        return True

    def stalled_for(self, now: float) -> float:
        """Return the time without progress if it exceeds the limit, else 0."""
        stalled = now - self._since
        return stalled if stalled >= self._limit_s else 0.0


class Watchdog:
    """Watches one feed from its event loop, and the event loop from a thread.

    An unavailable dependency is not a stall: a role that holds a batch calls `beat` at each
    attempt, and each check asks the feed whether its broker responds.
    """

    def __init__(
        self, feed: Watched, holds: Holds, *, limit_s: float = LIMIT_S, thread: bool = True
    ) -> None:
        self._feed, self._holds = feed, holds
        self._limit_s, self._has_thread = limit_s, thread
        self._loop = asyncio.get_running_loop()
        self._timer = StallTimer(limit_s, self._loop.time())
        self._checked_at = time.monotonic()
        self._over = threading.Event()

    def beat(self) -> None:
        """Report that no progress is expected: a batch is held, or takes long."""
        self._timer.reset(self._loop.time())

    async def watch(self) -> None:
        """Watch until cancelled.

        Raises:
            Stalled: records are pending, and none was finished for too long.
        """
        pause = min(5.0, self._limit_s / 4)
        if self._has_thread:
            threading.Thread(target=self._watch_loop, args=(pause,), daemon=True).start()
        try:
            with self._holds.waiter() as waiter:
                while True:
                    await asyncio.sleep(pause)
                    self._checked_at = time.monotonic()
                    await self._check(pause, waiter)
        finally:
            self._over.set()

    async def _check(self, pause: float, waiter: Waiter) -> None:
        standing, asked_at = self._feed.standing(), self._loop.time()
        has_progressed = self._timer.has_progressed(standing, asked_at)
        if not await self._feed.answers(within_s=pause):
            self.beat()
            waiter.failed(FeedUnavailable(f"no answer within {pause:g} s"), asked_at)
            return
        waiter.answered()
        await asyncio.sleep(0)  # a beat of the thread comes first
        if has_progressed:
            return
        if stalled := self._timer.stalled_for(self._loop.time()):
            for task in asyncio.all_tasks():
                task.print_stack(limit=8, file=sys.stderr)
            raise Stalled(
                f"{standing.behind} records are pending and none was finished for "
                f"{stalled:.0f} s: exiting for a restart; "
                "the stack of each task is in the log"
            )

    def _watch_loop(self, pause: float) -> None:
        asked_at = time.monotonic()
        while not self._over.wait(pause):
            now = time.monotonic()
            if now - asked_at > 2 * pause:
                self._checked_at = now  # this thread slept, too: the process was frozen
                self._loop.call_soon_threadsafe(self.beat)
            asked_at = now
            # A check may take as long as the pause before it.
            if now - self._checked_at > self._limit_s + 2 * pause:
                sys.stderr.write(f"the event loop hangs for {self._limit_s:.0f} s: exiting\n")
                faulthandler.dump_traceback(all_threads=True)
                os._exit(EXIT_CODE)
