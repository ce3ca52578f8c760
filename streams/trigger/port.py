"""Ports of the trigger: ledger, playbook catalog, topic ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streams.events.model import NewEvent
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Unique position of a trigger record, also across recreated topics."""

    topic_id: str
    partition: int
    offset: int
    topic: str

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One record and the first event it would cause.

    The event's root is new: an execution, or a rejected trigger. `key` is None if the record
    has none or is rejected.
    """

    origin: Origin
    event: NewEvent
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entered:
    """The ledger's row for a record: its execution, or its rejection."""

    origin: Origin
    execution_id: int | None = None
    rejected_id: int | None = None
    is_new: bool = False
    """Whether this call created the root, not an earlier record or delivery."""


class TriggerLedger(Protocol):
    """Maps records to executions, permanently.

    The rows and the first events are written together or not at all. A record that was
    entered before, and a second record with a key of the same tenant, get the first result.
    """

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch in one transaction; return the results in its order, once durable.

        Raises:
            Refused: the database rejects one of them; nothing was entered.
            Unavailable: the database cannot be reached; retrying is safe.
        """
        ...


@dataclass(frozen=True, slots=True)
class PlaybookVersion:
    """A version of a playbook that can be started."""

    catalog_id: int
    version: int


class PlaybookVersions(Protocol):
    """Resolves playbook paths, which are per tenant and organization."""

    async def find(self, scope: Scope, path: str, version: int | None) -> PlaybookVersion | None:
        """Return the playbook, the newest if `version` is None; None if it does not exist.

        Raises:
            Unavailable: the catalog cannot be read; retrying is safe.
        """
        ...


class TopicIds(Protocol):
    """Returns the ids that the broker assigned to topics."""

    async def topic_id(self, topic: str) -> str:
        """Return the id.

        Raises:
            Unavailable: the broker cannot be reached, or the topic does not exist.
        """
        ...

    def forget(self) -> None:
        """Clear the cache: the topic may have been recreated."""
        ...
