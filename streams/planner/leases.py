"""Expiry of leases: by time, or because the worker has a newer incarnation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from streams.events.types import FrameLeaseExpiredReason
from streams.execution.lease import Lease
from streams.execution.plan import Plan
from streams.log.worker_incarnations import is_over
from streams.planner.draft import Moment


def ends_at(lease: Lease, moment: Moment) -> datetime:
    """Return when a lease expires, if its owner does not renew it.

    It counts from this planner's takeover at the earliest: before, its owner may have been
    unable to renew it.
    """
    length = timedelta(seconds=lease.seconds)
    return max(lease.since, moment.floor) + length + moment.rules.lease_margin


@dataclass(frozen=True, slots=True)
class Expiry:
    """Why a lease is over."""

    reason: FrameLeaseExpiredReason


def expiry_of(lease: Lease, moment: Moment) -> Expiry | None:
    """Return why a lease is over; None for one that is not.

    A worker registers its incarnation before it claims anything, so the holder of an earlier
    incarnation's lease is dead, or a zombie whose commit is refused: its version is outdated.
    """
    if ends_at(lease, moment) <= moment.now:
        return Expiry("expired")
    return Expiry("restarted") if is_over(lease.owner, moment.incarnations) else None


def has_leases_of_earlier_incarnations(plan: Plan, incarnations: Mapping[str, str]) -> bool:
    """Return whether an earlier incarnation of a worker holds a lease."""
    leases = [command.lease for command in plan.commands.values()]
    for stage in plan.stages.values():
        leases += [frame.lease for frame in stage.frames.values()]
    return any(lease is not None and is_over(lease.owner, incarnations) for lease in leases)
