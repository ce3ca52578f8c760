"""Waits for a trigger record's execution to start and to end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from streams.clock import Clock
from streams.errors import PoisonRecord, Unavailable
from streams.events.model import Event, Root
from streams.events.types import ExecutionCancelled, PlaybookCompleted, PlaybookFailed, typed
from streams.log.port import EventStore
from streams.trigger.port import Entered, Origin

PAUSE_S = 0.05
AWAY_PAUSE_S = 0.5
"""Pause while the log does not answer."""
_ENDINGS: dict[str, str] = {
    PlaybookCompleted.TYPE: "COMPLETED",
    PlaybookFailed.TYPE: "FAILED",
    ExecutionCancelled.TYPE: "CANCELLED",
}


class RejectedTrigger(PoisonRecord):
    """The record can never start anything; the message says why."""


class NotYet(Unavailable):
    """Timed out; it may still happen."""


@dataclass(frozen=True, slots=True)
class ExecutionEnding:
    """How an execution ended."""

    execution_id: int
    status: str
    event: Event

    @property
    def is_well(self) -> bool:
        """Return whether it completed."""
        return self.status == "COMPLETED"


class RecordLookup(Protocol):
    """Looks trigger records up in the ledger."""

    async def find(self, origin: Origin) -> Entered | None:
        """Return the result of a record; None while it is not processed."""
        ...


class Follower:
    """Follows a record for a limited time."""

    def __init__(
        self, ledger: RecordLookup, log: EventStore, clock: Clock, *, timeout_s: float
    ) -> None:
        self._ledger, self._log, self._clock = ledger, log, clock
        self._timeout_s, self._until = timeout_s, clock.monotonic() + timeout_s

    async def execution(self, origin: Origin) -> int:
        """Wait until the record is in the ledger, and return its execution.

        Raises:
            RejectedTrigger: it was rejected.
            NotYet: no trigger process has processed it in time.
        """
        while (found := await self._found(origin)) is None:
            todo = "check that a trigger process runs (`streams status`)"
            await self._pause(f"the trigger record at {origin} was not processed", todo)
        if found.execution_id is not None:
            return found.execution_id
        assert found.rejected_id is not None
        async for event in self._log.read_root(Root("trigger", found.rejected_id)):
            raise RejectedTrigger(f"trigger {found.rejected_id} is rejected: {event.error}")
        raise RejectedTrigger(f"trigger {found.rejected_id} is rejected")

    async def end(self, execution_id: int) -> ExecutionEnding:
        """Wait until the execution has ended.

        Raises:
            NotYet: it has not ended in time.
            Unavailable: the log is away, and was until the time was over.
        """
        seq, last, root = 0, "nothing yet", Root("execution", execution_id)
        while True:
            try:
                async for event in self._log.read_root(root, after_seq=seq):
                    seq, last = event.seq, event.type
                    if event.type in _ENDINGS:
                        return ExecutionEnding(execution_id, status_of(event), event)
            except Unavailable as error:
                await self._hold(error)
                continue
            todo = f"its last event is {last}; it continues without this command"
            await self._pause(f"execution {execution_id} has not ended", todo)

    async def _found(self, origin: Origin) -> Entered | None:
        while True:
            try:
                return await self._ledger.find(origin)
            except Unavailable as error:
                await self._hold(error)

    async def _hold(self, error: Unavailable) -> None:
        """Wait for the log, which may be restarted; raise its error once the time is over."""
        if self._clock.monotonic() > self._until:
            raise error
        await asyncio.sleep(AWAY_PAUSE_S)

    async def _pause(self, what: str, todo: str) -> None:
        if self._clock.monotonic() > self._until:
            raise NotYet(f"{what} within {self._timeout_s:.0f} s; {todo}")
        await asyncio.sleep(PAUSE_S)


def status_of(event: Event) -> str:
    """Return the status that an execution's last event gives it."""
    match typed(event):
        case PlaybookCompleted(partial=True):
            return "PARTIAL"
    return _ENDINGS[event.type]
