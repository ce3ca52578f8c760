"""The lease of a frame or command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from streams.events.types import (
    CommandClaimed,
    CommandHeartbeat,
    CommandLeaseExpired,
    FrameClaimed,
    FrameHeartbeat,
    FrameLeaseExpired,
)


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's lease; times are the log's, so all machines agree on them."""

    owner: str
    since: datetime
    seconds: int

    @property
    def until(self) -> datetime:
        """When it expires without a heartbeat."""
        return self.since + timedelta(seconds=self.seconds)


def lease_of(
    event: FrameClaimed | FrameHeartbeat | CommandClaimed | CommandHeartbeat, at: datetime
) -> Lease:
    """Return the lease that a claim or a heartbeat starts."""
    return Lease(event.worker, at, event.lease_seconds)


RESTARTED = "its worker began a new life"  # as states have it since the first release


def expiry(event: FrameLeaseExpired | CommandLeaseExpired) -> str:
    """Return why a lease ended before its owner released it."""
    reason = event.reason
    if isinstance(event, FrameLeaseExpired):
        reason = RESTARTED if event.reason == "restarted" else None
    if reason:
        return f"{event.worker} lost it: {reason}"
    return f"the lease of {event.worker} ran out"
