"""Lag of projectors by shard, from their checkpoints and the ends of the topics. Pure.

After a shard moved, both projectors have a checkpoint of its partitions: the one that came
further counts, and the other one is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from streams.kafka.feed.port import TopicPartition

NOBODY = "-"
"""The shard of partitions that nobody has a checkpoint of."""


class StoredCheckpoint(NamedTuple):
    """How far a shard read a partition."""

    shard_id: str
    partition: TopicPartition
    topic_id: str
    next_offset: int
    last_position: int
    updated_at: datetime


class Unread(NamedTuple):
    """What a partition has after a place."""

    messages: int
    """At most: with the markers of transactions between them."""
    oldest_at: datetime | None
    """When the first of them was stored; None if there is none."""


@dataclass(frozen=True, slots=True)
class ProjectedPartition:
    """How far the projection of a partition is behind."""

    topic: str
    partition: int
    shard_id: str
    next_offset: int
    last_position: int
    messages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ShardLag:
    """How far a shard is behind: all messages of its partitions, and the oldest one's age."""

    shard_id: str
    messages: int
    seconds: float
    updated_at: datetime | None
    partitions: tuple[ProjectedPartition, ...]


def newest(
    stored: Iterable[StoredCheckpoint], topic_ids: Mapping[str, str | None]
) -> dict[TopicPartition, StoredCheckpoint]:
    """Return the checkpoint that came furthest in each partition of the topics as they are now."""
    found: dict[TopicPartition, StoredCheckpoint] = {}
    for one in stored:
        if one.topic_id != topic_ids.get(one.partition.topic):
            continue
        other = found.get(one.partition)
        if other is None or _place(other) < _place(one):
            found[one.partition] = one
    return found


def _place(one: StoredCheckpoint) -> tuple[int, datetime]:
    return one.next_offset, one.updated_at


def lags(
    furthest: Mapping[TopicPartition, StoredCheckpoint],
    unread: Mapping[TopicPartition, Unread],
    now: datetime,
) -> Sequence[ShardLag]:
    """Return the lag of each shard, by name; those without a partition are omitted."""
    by_shard: dict[str, list[ProjectedPartition]] = {}
    for partition, behind in sorted(unread.items()):
        one = furthest.get(partition)
        shard_id = NOBODY if one is None else one.shard_id
        age = 0.0 if behind.oldest_at is None else (now - behind.oldest_at).total_seconds()
        by_shard.setdefault(shard_id, []).append(
            ProjectedPartition(
                topic=partition.topic,
                partition=partition.partition,
                shard_id=shard_id,
                next_offset=0 if one is None else one.next_offset,
                last_position=0 if one is None else one.last_position,
                messages=behind.messages,
                seconds=round(max(0.0, age), 3),
            )
        )
    times: dict[str, datetime] = {}
    for one in furthest.values():
        times[one.shard_id] = max(one.updated_at, times.get(one.shard_id, one.updated_at))
    return [
        ShardLag(
            shard_id=shard_id,
            messages=sum(one.messages for one in found),
            seconds=max(one.seconds for one in found),
            updated_at=times.get(shard_id),
            partitions=tuple(found),
        )
        for shard_id, found in sorted(by_shard.items())
    ]
