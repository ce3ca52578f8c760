"""Planted bugs, to verify that the simulator finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from types import ModuleType
from typing import Any

import streams.dev.simulator.world
import streams.execution.evolve
import streams.planner.windows
import streams.worker.attempt.lease
from streams.dev.simulator.database import Database
from streams.events.model import NewEvent
from streams.events.types import ExecutionSuspended, FrameCommitted
from streams.execution.attempts import AttemptEvent
from streams.ids import derive_id
from streams.kafka.work.item import WorkItem
from streams.log.worker_incarnations import MemoryIncarnations, worker_of
from streams.worker.attempt.events import attempt_event


@contextmanager
def _swapped(holder: ModuleType | type, name: str, planted: object) -> Iterator[None]:
    was = getattr(holder, name)
    setattr(holder, name, planted)
    try:
        yield
    finally:
        setattr(holder, name, was)


def lost_acknowledgement() -> AbstractContextManager[None]:
    """A save whose response was lost is repeated without checking its fence."""
    return _swapped(streams.dev.simulator.world, "Database", lambda: Database(has_fences=False))


def double_dispatch() -> AbstractContextManager[None]:
    """A repeated decision gives the same window another id, so it is dispatched twice."""
    numbers = count(1)

    def unstable(cause: int, ordinal: int, purpose: str) -> int:
        return derive_id(cause, ordinal, f"{purpose}/{next(numbers)}")

    return _swapped(streams.planner.windows, "derive_id", unstable)


def unfenced_commit() -> AbstractContextManager[None]:
    """A worker commits without an expected version, so a stale owner succeeds."""

    def careless(item: WorkItem, event: AttemptEvent, **fields: Any) -> NewEvent:
        new = attempt_event(item, event, **fields)
        return replace(new, expected_version=None) if isinstance(event, FrameCommitted) else new

    return _swapped(streams.worker.attempt.lease, "attempt_event", careless)


@contextmanager
def deaf_to_suspension() -> Iterator[None]:
    """The fold ignores `execution.suspended`, so planning continues."""
    handlers = streams.execution.evolve._HANDLERS
    was = handlers.pop(ExecutionSuspended)
    try:
        yield
    finally:
        handlers[ExecutionSuspended] = was


def late_registration() -> AbstractContextManager[None]:
    """A registration is stored whatever it expects, so a dead worker's ends the live one."""

    async def careless(self: MemoryIncarnations, previous: str | None, owner: str) -> bool:
        newest = (await self.current()).get(worker_of(owner))
        return await replace_incarnation(self, newest, owner)

    replace_incarnation = MemoryIncarnations.replace
    return _swapped(MemoryIncarnations, "replace", careless)


PLANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "lost-acknowledgement": lost_acknowledgement,
    "double-dispatch": double_dispatch,
    "unfenced-commit": unfenced_commit,
    "deaf-to-suspension": deaf_to_suspension,
    "late-registration": late_registration,
}
