"""A lease: who holds a frame or a command, since when and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from streams.events.event_fields import Fact, number, text


@dataclass(frozen=True, slots=True)
class Lease:
    """Times are those of the log, so that all machines agree on them."""

    owner: str
    since: datetime
    seconds: int

    @property
    def until(self) -> datetime:
        """The end, unless a heartbeat comes first."""
        return self.since + timedelta(seconds=self.seconds)


def lease_of(fact: Fact, at: datetime) -> Lease:
    """Return the lease that a claim or a heartbeat begins."""
    return Lease(str(fact.meta["worker"]), at, number(fact, "lease_seconds"))


def expiry(fact: Fact) -> str:
    """Say why a lease is over before its owner ended it."""
    owner, reason = fact.meta["worker"], text(fact, "reason")
    return f"{owner} lost it: {reason}" if reason else f"the lease of {owner} ran out"
