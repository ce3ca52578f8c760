"""When to look at an open execution again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from streams.planner.backlog import Backlog


@dataclass(frozen=True, slots=True)
class Watch:
    """When to look at an execution again, and why."""

    absorbed_through: int
    """The log was absorbed up to this `seq`, without a gap."""
    wake_at: datetime | None = None
    """When to decide again."""
    owners: frozenset[str] = frozenset()
    """The workers that hold its leases."""
    is_waiting: bool = False
    """Whether a frame or command waits for a worker."""
    backlog: Backlog = ()
