"""What triggers need from outside: a ledger, a catalog of playbooks, the topics' ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streams.events.model import NewEvent
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a trigger record stands: for ever one record, also when its topic is made anew."""

    topic_id: str
    partition: int
    offset: int
    topic: str

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One record and the first event it would bring about.

    The event's root is new: an execution, or a trigger that is rejected. `key` is None
    where the record has none, and for what is rejected.
    """

    origin: Origin
    event: NewEvent
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Entered:
    """What the ledger has for a record: the execution it means, or that it was rejected."""

    origin: Origin
    execution_id: int | None = None
    rejected_id: int | None = None
    is_new: bool = False
    """Whether this call made the root, and not an earlier record or delivery."""


class TriggerLedger(Protocol):
    """Knows for ever which record became which execution.

    The rows and the first events are written together or not at all. A record that was
    entered before, and a second record with a key of the same tenant, get the first answer.
    """

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch in one transaction; answer in its order, once it is durable.

        Raises:
            Refused: the database cannot take one of them; nothing was entered.
            Unavailable: the database cannot be reached; asking again is safe.
        """
        ...


@dataclass(frozen=True, slots=True)
class PlaybookVersion:
    """A version of a playbook that can be started."""

    catalog_id: int
    version: int


class PlaybookVersions(Protocol):
    """Finds playbooks by their paths, which are per tenant and organization."""

    async def find(self, scope: Scope, path: str, version: int | None) -> PlaybookVersion | None:
        """Return the playbook, the newest where `version` is None; None if there is none.

        Raises:
            Unavailable: the catalog cannot be read; asking again is safe.
        """
        ...


class TopicIds(Protocol):
    """Knows the id that the broker gave a topic when it was made."""

    async def topic_id(self, topic: str) -> str:
        """Return the id.

        Raises:
            Unavailable: the broker does not answer, or has no such topic.
        """
        ...

    def forget(self) -> None:
        """Ask the broker again next time: the topic may have been made anew."""
        ...
