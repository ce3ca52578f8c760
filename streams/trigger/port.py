"""Ports of the trigger: ledger, playbook catalog, topic ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streams.errors import Refused
from streams.events.model import NewEvent
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Unique position of a record for one reader, also across recreated topics."""

    topic_id: str
    partition: int
    offset: int
    topic: str
    reader: str = ""
    """Empty for the trigger topic and HTTP; else a subscription, or a replay of one."""

    def __str__(self) -> str:
        place = f"{self.topic_id}/{self.partition}/{self.offset}"
        return f"{self.reader}:{place}" if self.reader else place


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One record and the first event it would cause.

    The event's root is new: an execution, or a rejected trigger. `key` is None if the record
    has none or is rejected. Entries with the same event are a batch that starts one execution.
    """

    origin: Origin
    event: NewEvent
    key: str | None = None
    window_s: int | None = None
    """How long the key of a subscription's message counts; None: the key is the tenant's,
    for ever."""


@dataclass(frozen=True, slots=True)
class Entered:
    """The ledger's row for a record: its execution, or its rejection."""

    origin: Origin
    execution_id: int | None = None
    rejected_id: int | None = None
    is_new: bool = False
    """Whether this call created the root, not an earlier record or delivery."""


class PartlyEntered(Refused):
    """Some records of a batch were entered before; enter the others as a batch of their own."""

    def __init__(self, known: frozenset[Origin]) -> None:
        super().__init__(f"{len(known)} records of a batch were entered before")
        self.known = known


class TriggerLedger(Protocol):
    """Maps records to executions, permanently.

    The rows and the first events are written together or not at all. A record that was
    entered before, and a second record with a key that counts, get the first result.
    """

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch in one transaction; return the results in its order, once durable.

        Raises:
            PartlyEntered: a batch has records that were entered before; nothing was entered.
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
