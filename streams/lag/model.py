"""Readings of consumer groups, and the lag that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from streams.lag.evaluation import LagStatus, OffsetCommit

NEVER = math.inf
"""Time to drain of a lag that does not shrink."""


class Trend(StrEnum):
    """Direction of a lag over the window of commits or samples."""

    GROWING = "growing"
    SHRINKING = "shrinking"
    STEADY = "steady"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Owner:
    """A member of a consumer group."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str


@dataclass(frozen=True, slots=True)
class PositionSample:
    """Committed offset and end of a partition at one time."""

    at_ms: int
    committed: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReading:
    """A partition and its group's position, as the broker reports them."""

    topic: str
    partition: int
    committed: int | None
    """None if the group has committed nothing for the partition."""
    start: int
    end: int
    stable_end: int
    """The last stable offset; read_committed consumers stop here."""
    first_ms: int | None
    """Timestamp of the first unconsumed record; None if there is none."""
    first_stable_ms: int | None
    """The same for read_committed consumers: without aborted and open transactions."""
    owner: Owner | None
    commits: tuple[OffsetCommit, ...] = ()
    samples: tuple[PositionSample, ...] = ()
    """Observed while watching; without them, rates come from `commits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """A consumer group at one time."""

    group: str
    state: str
    at_ms: int
    partitions: tuple[PartitionReading, ...]
    members: tuple[Owner, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionLag:
    """Lag of a group on one partition; None for what is unknown."""

    topic: str
    partition: int
    owner: Owner | None
    committed: int | None
    end: int
    stable_end: int
    messages: int | None
    messages_stable: int | None
    seconds: float | None
    seconds_stable: float | None
    deleted_count: int
    """Unconsumed offsets that retention has deleted."""
    produce_rate: float | None
    consume_rate: float | None
    drain_s: float | None
    """0 without lag, `NEVER` if it does not shrink."""
    trend: Trend
    status: LagStatus
    complete: float
    """Share of the window of ten commits that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSum:
    """Lag summed over the partitions of a group, a topic or a member."""

    name: str
    partition_count: int
    messages: int
    messages_stable: int
    seconds: float
    """The largest of any partition."""
    seconds_stable: float
    produce_rate: float | None
    consume_rate: float | None
    drain_s: float | None
    skew: float
    """Largest lag of a partition divided by the mean; 1 is even, 0 is no lag."""
    trend: Trend
    status: LagStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """Lag of a consumer group."""

    total: LagSum
    state: str
    partitions: tuple[TopicPartitionLag, ...]
    topics: tuple[LagSum, ...]
    members: tuple[LagSum, ...]
    """By member id; members without partitions included."""
    owners: tuple[Owner, ...]

    @property
    def group(self) -> str:
        """The id of the group."""
        return self.total.name
