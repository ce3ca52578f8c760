"""When a lease is over: its time has passed, or its owner is an earlier life of its worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from streams.execution.lease import Lease
from streams.execution.plan import Plan
from streams.log.worker_incarnations import is_over
from streams.planner.draft import Moment

NEW_LIFE = "its worker began a new life"


def ends_at(lease: Lease, moment: Moment) -> datetime:
    """Return when a lease is taken for over, if nothing else is learnt of its owner.

    It is counted from when this planner took over at the earliest: before, its owner may have
    been unable to renew it.
    """
    length = timedelta(seconds=lease.seconds)
    return max(lease.since, moment.floor) + length + moment.rules.lease_margin


@dataclass(frozen=True, slots=True)
class Expiry:
    """Why a lease is over; without a reason its time has passed."""

    reason: str | None = None


def expiry_of(lease: Lease, moment: Moment) -> Expiry | None:
    """Return why a lease is over; None for one that is not.

    A worker begins a life before it claims anything, so whoever holds the lease of an earlier
    one is dead, or a zombie whose commit will be refused: it expects a version that is gone.
    """
    if ends_at(lease, moment) <= moment.now:
        return Expiry()
    return Expiry(NEW_LIFE) if is_over(lease.owner, moment.lives) else None


def holds_of_earlier_lives(plan: Plan, lives: Mapping[str, str]) -> bool:
    """Return whether anything open is held by a worker's earlier life."""
    leases = [command.lease for command in plan.commands.values()]
    for stage in plan.stages.values():
        leases += [frame.lease for frame in stage.frames.values()]
    return any(lease is not None and is_over(lease.owner, lives) for lease in leases)
