"""Lanes of a frame: how many of its rows run, not counting those that only wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext

from streams.worker.port import ReleasedSlot

WAITING_PER_LANE = 8
"""Rows that may wait for each lane; more would only hold memory."""


class RowLanes:
    """Counts the running rows of a frame or command; the last one to wait releases its slot.

    A row that waits for a retry, a rate or a paused host leaves its lane to another row. The
    frame's slot of the worker is released while all of its rows wait.
    """

    def __init__(self, width: int, released_slot: ReleasedSlot = nullcontext) -> None:
        self._width, self._released_slot = width, released_slot
        self._running = self._waiting = 0
        self._returning: deque[asyncio.Future[None]] = deque()
        self._slot: ExitStack | None = None
        self._start: Callable[[], None] | None = None

    def start_with(self, start: Callable[[], None]) -> None:
        """Call `start` when a lane is free for another row."""
        self._start = start

    def enter(self) -> None:
        """Count a lane as running."""
        self._running += 1

    def leave(self) -> None:
        """Count a lane as ended."""
        self._running -= 1
        self._passed_on()

    @property
    def gives_way(self) -> bool:
        """Whether a lane must end after its row: another row is back from waiting."""
        return bool(self._returning) or self._running > self._width

    @contextmanager
    def released(self) -> Iterator[None]:
        """Leave the lane while only waiting; it is taken back at once."""
        self._waiting += 1
        self._running -= 1
        self._passed_on()
        try:
            yield
        finally:
            self._waiting -= 1
            self._running += 1
            self._retake_slot()

    async def rest(self, seconds: float) -> None:
        """Wait without a lane; then wait for one."""
        with self.released():
            await asyncio.sleep(seconds)
            while self._running >= self._width:
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._returning.append(turn)
                await turn

    def _passed_on(self) -> None:
        """Pass a free lane to a row that is back, or to the next one; else release the slot."""
        if self._running < self._width:
            while self._returning:
                turn = self._returning.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
            if self._start is not None and self._waiting <= WAITING_PER_LANE * self._width:
                self._start()
        if not self._running and self._waiting and self._slot is None:
            self._slot = ExitStack()
            self._slot.enter_context(self._released_slot())

    def _retake_slot(self) -> None:
        if self._slot is not None:
            slot, self._slot = self._slot, None
            slot.close()
