"""What the planner needs from outside."""

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
    """Compiled playbooks, and the versions that paths stand for."""

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path; without a version, the newest.

        Raises:
            Refused: there is none.
        """
        ...


class Tables(Protocol):
    """Keeps plans between two lives of a planner; losing them costs time, nothing else."""

    def load(self) -> dict[int, Plan]:
        """Return every plan that was kept."""
        ...

    def save(self, kept: Iterable[Plan], gone: Iterable[int]) -> None:
        """Write what changed in these plans, and drop those that have ended."""
        ...


class NoTables:
    """Keeps nothing: a new life reads everything from the log."""

    def load(self) -> dict[int, Plan]:
        """Return nothing."""
        return {}

    def save(self, kept: Iterable[Plan], gone: Iterable[int]) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerPorts:
    """Everything a planner uses."""

    store: EventStore
    families: Families
    payloads: PayloadStore
    queue: WorkQueue
    playbooks: PlaybookCatalog
    replies: Replies
    clock: Clock
    tables: Tables = field(default_factory=NoTables)
    lives: Incarnations = field(default_factory=MemoryIncarnations)
    journal: CrashJournal = field(default_factory=lambda: CrashJournal(MemoryJournalStorage()))
