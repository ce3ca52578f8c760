"""Ports of the planner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from streams.catalog.port import Playbooks
from streams.clock import Clock
from streams.execution.plan import Plan
from streams.kafka.feed.crash_journal import CrashJournal, MemoryJournalStorage
from streams.kafka.replies import Replies
from streams.kafka.work.port import WorkQueue
from streams.log.port import EventStore, Families
from streams.log.worker_incarnations import Incarnations, MemoryIncarnations
from streams.payload.port import PayloadStore


class PlaybookCatalog(Playbooks, Protocol):
    """Compiled playbooks, and resolution of paths to versions."""

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path; by default the newest version.

        Raises:
            Refused: the path or version does not exist.
        """
        ...


class Tables(Protocol):
    """Stores plans across restarts; losing them only costs time."""

    def load(self) -> dict[int, Plan]:
        """Return every stored plan."""
        ...

    def save(self, plans: Iterable[Plan], ended: Iterable[int]) -> None:
        """Write the changes of open plans, and delete ended ones."""
        ...


class NoTables:
    """Stores nothing: a restart reads everything from the log."""

    def load(self) -> dict[int, Plan]:
        """Return nothing."""
        return {}

    def save(self, plans: Iterable[Plan], ended: Iterable[int]) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPorts:
    """Dependencies of a planner."""

    store: EventStore
    families: Families
    payloads: PayloadStore
    queue: WorkQueue
    playbooks: PlaybookCatalog
    replies: Replies
    clock: Clock
    tables: Tables = field(default_factory=NoTables)
    incarnations: Incarnations = field(default_factory=MemoryIncarnations)
    journal: CrashJournal = field(default_factory=lambda: CrashJournal(MemoryJournalStorage()))
