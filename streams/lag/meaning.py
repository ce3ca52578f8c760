"""What the lag of known groups counts."""

from __future__ import annotations

from dataclasses import dataclass

from streams.lag.evaluation import SILENCE_MS

PLANNER_GROUP, PROJECTOR_GROUP, TRIGGER_GROUP = "noetl.planner", "noetl.projector", "noetl.trigger"
WORKER_PREFIX, SUBSCRIPTION_PREFIX = "noetl.worker.", "noetl.subscription."
SINK_PREFIX = "connect-"
"""Connect's consumer group of a sink connector, followed by its name."""
FRAME_SILENCE_MS = 180_000
"""A worker commits past a frame only once it is finished, so it is silent for as long."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A group's lag in words."""

    counts: str
    silence_ms: int = SILENCE_MS
    """Time without commits after which the group counts as stopped, if it has work."""


_FOREIGN = Meaning("records of a group that is not ours")
_OURS = {
    PLANNER_GROUP: Meaning("events that are not planned yet"),
    PROJECTOR_GROUP: Meaning("events that are not in the projections yet"),
    TRIGGER_GROUP: Meaning("trigger records that have started nothing yet"),
}


def meaning_of(group: str) -> Meaning:
    """Return what the lag of a group counts."""
    if pool := pool_of(group):
        what = f"frames and commands dispatched to pool {pool} and not finished"
        return Meaning(what, FRAME_SILENCE_MS)
    if group.startswith(SUBSCRIPTION_PREFIX):
        return Meaning(f"records of subscription {group.removeprefix(SUBSCRIPTION_PREFIX)}")
    if sink := sink_of(group):
        # Connect commits once a minute.
        return Meaning(f"records that are not in sink {sink} yet", FRAME_SILENCE_MS)
    return _OURS.get(group, _FOREIGN)


def pool_of(group: str) -> str | None:
    """Return the pool of a group of workers."""
    return group.removeprefix(WORKER_PREFIX) if group.startswith(WORKER_PREFIX) else None


def sink_of(group: str) -> str | None:
    """Return the connector of a sink's group."""
    return group.removeprefix(SINK_PREFIX) if group.startswith(SINK_PREFIX) else None
