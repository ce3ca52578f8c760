"""What the rest of the program needs from the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from streams.events.model import Event, NewEvent, Root


class AppendOutcome(StrEnum):
    """What became of one event of an append."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    """Its idempotency key was there already, with the same content."""


class Appended(NamedTuple):
    """An event as the log has it: for a duplicate, the one stored first.

    A tuple, like its receipt, because one is made for every event appended, and a frozen
    dataclass takes more than twice as long to make.
    """

    event_id: int
    outcome: AppendOutcome
    seq: int
    position: int
    stream_version: int
    ingest_time: datetime
    chain: str


class Receipt(NamedTuple):
    """The log's answer to one batch.

    `claimed_by` is the event that already holds a claim the batch wanted. Then nothing
    was appended: somebody else does what the batch would have led to. That is no error.
    """

    events: tuple[Appended, ...]
    claimed_by: int | None = None

    @property
    def won(self) -> bool:
        """Say whether the caller goes on with what it wanted to do."""
        return self.claimed_by is None


@dataclass(frozen=True, slots=True, order=True)
class Frontier:
    """A cut across all roots: everything up to this transaction and position."""

    xid: int = 0
    position: int = 0


class EventStore(Protocol):
    """Appends events and returns them in order, always the same.

    A batch is atomic. Within a root, `seq` has no gaps and an answer up to N never changes.
    """

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append a batch and return once it is durable.

        Raises:
            Refused: a rule forbids one of its events; none of them was appended.
            Unavailable: the log cannot be reached; asking again is safe.
        """
        ...

    def read_root(
        self, root: Root, *, after_seq: int = 0, through_seq: int | None = None
    ) -> AsyncIterator[Event]:
        """Yield a root's events in `seq` order."""
        ...

    def read_stream(
        self, root: Root, stream_id: str, *, after_version: int = 0
    ) -> AsyncIterator[Event]:
        """Yield one entity's events in the order of their versions."""
        ...

    async def read_log(
        self, after: Frontier, *, limit: int = 1000
    ) -> tuple[Sequence[Event], Frontier]:
        """Return what follows `after` in the whole log, and the cut it reaches.

        What a transaction still running might yet put before the cut is not returned.
        """
        ...

    def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Yield the whole log from `after` on, and wait for more when it ends."""
        ...


class OpenRoots(Protocol):
    """Knows which roots are still under way."""

    async def open_roots(self, root_type: str) -> Sequence[int]:
        """Return the ids of the roots of this type that have not ended, oldest first.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def suspended_executions(self) -> Mapping[int, int]:
        """Return the executions that have not ended and are suspended, and since which `seq`.

        It is found without reading their other events.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...


class Families(Protocol):
    """Knows which executions another one started, and how executions ended."""

    async def open_children(self, execution_id: int) -> Sequence[int]:
        """Return the executions that this one started and that have not ended.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def endings(self, execution_ids: Sequence[int]) -> Mapping[int, Event]:
        """Return the event that ended each of these; those that are still open are missing.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...
