"""Ports of the planner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
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
from streams.planner.counts import PlannerCounts
from streams.planner.watch import Watch


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

    def watches(self) -> Mapping[int, Watch]:
        """Return the watch of every stored plan."""
        ...

    def get(self, execution_id: int) -> Plan | None:
        """Return a plan as it was saved last; None if it cannot be read whole."""
        ...

    def save(self, plans: Iterable[tuple[Plan, datetime | None]], ended: Iterable[int]) -> None:
        """Record open plans with their wake times, and the end of others."""
        ...

    def release(self, plan: Plan) -> bool:
        """Return whether `get` can return this plan later, so that nobody else need hold it."""
        ...

    def forget(self, execution_ids: Iterable[int]) -> None:
        """Forget plans that another planner has now, without deleting them."""
        ...


class NoTables:
    """Stores nothing: a restart reads everything from the log."""

    def watches(self) -> Mapping[int, Watch]:
        """Return nothing."""
        return {}

    def get(self, execution_id: int) -> Plan | None:
        """Return nothing."""
        return None

    def save(self, plans: Iterable[tuple[Plan, datetime | None]], ended: Iterable[int]) -> None:
        """Do nothing."""

    def release(self, plan: Plan) -> bool:
        """Return False."""
        return False

    def forget(self, execution_ids: Iterable[int]) -> None:
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
    counts: PlannerCounts = field(default_factory=PlannerCounts)
    journal: CrashJournal = field(default_factory=lambda: CrashJournal(MemoryJournalStorage()))
