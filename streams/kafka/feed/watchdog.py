"""Ends a process that has work and makes no progress, even when its event loop hangs."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time

from streams.kafka.errors import Stalled
from streams.kafka.feed.port import Standing, Watched

LIMIT_S = 60.0
EXIT_CODE = 70
"""The process hung so badly that it could not say so itself."""


class Patience:
    """Judges standings: too long behind without progress is a stall."""

    def __init__(self, limit_s: float, now: float) -> None:
        self._limit_s, self._since, self._progress = limit_s, now, -1

    def beat(self, now: float) -> None:
        """Take it as progress: something long is under way, and well."""
        self._since = now

    def stalled_for(self, standing: Standing, now: float) -> float:
        """Return how long there was work without progress, if that is too long; else 0."""
        if standing.behind == 0 or standing.progress != self._progress:
            self._progress = standing.progress
            self._since = now
        stalled = now - self._since
        return stalled if stalled >= self._limit_s else 0.0


class Watchdog:
    """Watches one feed from its event loop, and the event loop from a thread."""

    def __init__(self, feed: Watched, *, limit_s: float = LIMIT_S) -> None:
        self._feed, self._limit_s = feed, limit_s
        self._patience = Patience(limit_s, time.monotonic())
        self._seen_at = time.monotonic()
        self._over = threading.Event()

    def beat(self) -> None:
        """Say that something long is under way, and well."""
        self._patience.beat(time.monotonic())

    async def watch(self) -> None:
        """Watch until cancelled.

        Raises:
            Stalled: records wait, and none was finished for too long.
        """
        pause = min(5.0, self._limit_s / 4)
        thread = threading.Thread(target=self._watch_loop, args=(pause,), daemon=True)
        thread.start()
        try:
            while True:
                await asyncio.sleep(pause)
                self._seen_at = now = time.monotonic()
                standing = self._feed.standing()
                if stalled := self._patience.stalled_for(standing, now):
                    for task in asyncio.all_tasks():
                        task.print_stack(limit=8, file=sys.stderr)
                    raise Stalled(
                        f"{standing.behind} records wait and none was finished for "
                        f"{stalled:.0f} s: the process ends, to begin again; "
                        "what each task was doing is in its log"
                    )
        finally:
            self._over.set()

    def _watch_loop(self, pause: float) -> None:
        while not self._over.wait(pause):
            if time.monotonic() - self._seen_at > self._limit_s + pause:
                sys.stderr.write(f"the event loop hangs for {self._limit_s:.0f} s: ending\n")
                faulthandler.dump_traceback(all_threads=True)
                os._exit(EXIT_CODE)
