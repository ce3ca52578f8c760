"""Values and ports of the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from streams.events.model import Event, NewEvent, Root


class AppendOutcome(StrEnum):
    """Outcome of one event of an append."""

    APPENDED = "appended"
    DUPLICATE = "duplicate"
    """An event with this idempotency key and content was already stored."""


class Appended(NamedTuple):
    """The stored event; for a duplicate, the first one.

    A tuple, because a frozen dataclass takes twice as long to create, once per event.
    """

    event_id: int
    outcome: AppendOutcome
    seq: int
    position: int
    stream_version: int
    ingest_time: datetime
    chain: str


class Receipt(NamedTuple):
    """The response to one batch.

    `claimed_by` is the event that already holds a claim of the batch. Then nothing was
    appended, because another writer does the same work. That is not an error.
    """

    events: tuple[Appended, ...]
    claimed_by: int | None = None

    @property
    def won(self) -> bool:
        """Whether the batch was appended, so that the caller may continue."""
        return self.claimed_by is None


@dataclass(frozen=True, slots=True, order=True)
class Frontier:
    """A position across all roots: everything up to this transaction and position."""

    xid: int = 0
    position: int = 0


class EventStore(Protocol):
    """Appends events and reads them in a stable order.

    A batch is atomic. Within a root, `seq` has no gaps and events up to N never change.
    """

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append a batch and return once it is durable.

        Raises:
            Refused: a rule forbids one of its events; none was appended.
            Unavailable: the log cannot be reached; retrying is safe.
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
        """Yield a stream's events in version order."""
        ...

    async def read_log(
        self, after: Frontier, *, limit: int = 1000
    ) -> tuple[Sequence[Event], Frontier]:
        """Return events after `after` across all roots, and the new frontier.

        Stops before the oldest running transaction, whose events would precede the frontier.
        """
        ...

    def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Yield events of all roots after `after`, and wait for more at the end."""
        ...


class OpenRoots(Protocol):
    """Lists roots that have not ended."""

    async def open_roots(self, root_type: str) -> Mapping[int, int]:
        """Return the roots of this type that have not ended, oldest first, with their last `seq`.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def suspended_executions(self, among: Collection[int] | None = None) -> Mapping[int, int]:
        """Return the suspended executions, and since which `seq`; reads no other events.

        By default of all open ones, which costs one lookup for each.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...


class Families(Protocol):
    """Looks up child executions, and the endings of executions."""

    async def open_children(self, execution_id: int) -> Sequence[int]:
        """Return the open child executions of this one, without detached ones.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...

    async def endings(self, execution_ids: Sequence[int]) -> Mapping[int, Event]:
        """Return the event that ended each of these; open ones are omitted.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...
