"""One view from the log to its readers: the age of what has not passed each hop.

An item that waits at one hop has not passed the later ones either, and two readers of the same
topic may wait for the same event. So a hop adds only what it is behind the hops before it, and
the sum is the age of the oldest item that is not through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class HopName(StrEnum):
    """The hops in the order in which an event passes them; sinks come last."""

    APPEND = "append"
    SLOT = "replication_slot"
    TOPIC = "topic"
    PLANNER = "planner"
    WORK_TOPIC = "work_topic"
    WORKER = "worker"
    PROJECTION = "projection"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class HopReading:
    """One hop now."""

    hop: HopName
    seconds: float | None
    """Age of the oldest item that has not passed it; 0 if all have, None if it is unknown."""
    waiting: int | None
    what: str
    name: str = ""
    """Which one, of several sinks."""


@dataclass(frozen=True, slots=True)
class HopLag:
    """A hop with its share of the sum."""

    reading: HopReading
    adds_s: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All hops; `total_s` is the sum of what they add."""

    at: datetime
    """The time at which the ages are taken."""
    hops: tuple[HopLag, ...]
    total_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every hop could be read."""
        return all(one.reading.seconds is not None for one in self.hops)


def waterfall_of(at: datetime, readings: Sequence[HopReading]) -> Waterfall:
    """Return the waterfall of readings, which are in the order of the hops."""
    reached, hops = 0.0, []
    for one in readings:
        behind = max(reached, one.seconds or 0.0)
        hops.append(HopLag(one, behind - reached))
        reached = behind
    return Waterfall(at, tuple(hops), reached)
