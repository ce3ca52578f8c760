"""Injected faults, decided by one seed and counted by kind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from streams.errors import Unavailable

T = TypeVar("T")


class Injected(Unavailable):
    """A simulated outage of a dependency."""


@dataclass(slots=True)
class Process:
    """A process that can be killed; its tasks can then do nothing more.

    It can also be stopped, or fenced: then another process has its name, and the broker
    delivers nothing more to it, nor does it learn of the other.
    """

    name: str
    is_alive: bool = True
    is_fenced: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self) -> None:
        """Cancel the caller if its process is dead."""
        if not self.is_alive:
            raise asyncio.CancelledError(f"{self.name} was killed")


@dataclass(slots=True)
class Faults:
    """Probabilities of faults; all zero after the fault phase."""

    random: Random
    slow: float = 0.02
    hang: float = 0.01
    refuse: float = 0.01
    lose_answer: float = 0.01
    drop: float = 0.02
    duplicate: float = 0.05
    reorder: float = 0.3
    is_on: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def happens(self, kind: str, chance: float) -> bool:
        """Decide randomly on one fault, and count it."""
        if self.is_on and self.random.random() < chance:
            self.counts[kind] += 1
            return True
        return False

    async def read(self, process: Process, ask: Callable[[], Awaitable[T]]) -> T:
        """Run a query after a delay, unless the dependency is down."""
        process.check()
        await asyncio.sleep(self._delay_s())
        process.check()
        if self.happens("refused", self.refuse):
            raise Injected("down")
        return await ask()

    async def write(self, process: Process, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request that has an effect.

        Once sent it cannot be cancelled: it arrives even if the caller times out or dies, and
        the response may be lost.
        """
        process.check()
        if self.happens("refused", self.refuse):
            await asyncio.sleep(self._delay_s())
            raise Injected("down")
        on_its_way = asyncio.ensure_future(self._arrive(send))
        on_its_way.add_done_callback(seen)
        result = await asyncio.shield(on_its_way)
        lost = self.happens("answer lost", self.lose_answer)
        await asyncio.sleep(self._delay_s())
        process.check()
        if lost:
            raise Injected("no answer")
        return result

    async def _arrive(self, send: Callable[[], Awaitable[T]]) -> T:
        await asyncio.sleep(self._delay_s())
        return await send()

    def _delay_s(self) -> float:
        if self.happens("hung", self.hang):
            return self.random.uniform(8.0, 25.0)
        if self.happens("slow", self.slow):
            return self.random.uniform(0.1, 3.0)
        return self.random.uniform(0.0, 0.02)


def seen(done: asyncio.Future[Any]) -> None:
    """Retrieve an outcome that may no longer be awaited."""
    if not done.cancelled():
        done.exception()
