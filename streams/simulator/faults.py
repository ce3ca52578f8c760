"""What can go wrong, decided by one seed and counted by kind."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from streams.errors import Unavailable


class Injected(Unavailable):
    """A dependency that is down because the simulation says so."""


@dataclass(slots=True)
class Process:
    """Something that can be killed; what is left of it can then do nothing more."""

    name: str
    is_alive: bool = True

    def check(self) -> None:
        """End the caller if its process is dead: a killed process says no last words."""
        if not self.is_alive:
            raise asyncio.CancelledError(f"{self.name} was killed")


@dataclass(slots=True)
class Faults:
    """Chances, each of them out of 1; all of them off once the bad times are over."""

    random: Random
    slow: float = 0.02
    hang: float = 0.003
    refuse: float = 0.01
    lose_answer: float = 0.01
    drop: float = 0.02
    duplicate: float = 0.05
    reorder: float = 0.3
    is_on: bool = True
    counts: Counter[str] = field(default_factory=Counter)

    def happens(self, kind: str, chance: float) -> bool:
        """Throw the dice for one fault, and count it when it happens."""
        if self.is_on and self.random.random() < chance:
            self.counts[kind] += 1
            return True
        return False

    async def before(self, process: Process) -> None:
        """Delay a call, and perhaps refuse it before it had an effect."""
        process.check()
        await asyncio.sleep(self._delay_s())
        process.check()
        if self.happens("refused", self.refuse):
            raise Injected("down")

    async def after(self, process: Process) -> None:
        """Delay an answer, and perhaps lose it after the call had its effect."""
        lost = self.happens("answer lost", self.lose_answer)
        await asyncio.sleep(self._delay_s())
        process.check()
        if lost:
            raise Injected("no answer")

    def _delay_s(self) -> float:
        if self.happens("hung", self.hang):
            return self.random.uniform(8.0, 25.0)
        if self.happens("slow", self.slow):
            return self.random.uniform(0.1, 3.0)
        return self.random.uniform(0.0, 0.02)
