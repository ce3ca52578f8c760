"""Whose partitions are whose, and how far behind they are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from streams.kafka.feed.port import TopicPartition
from streams.projector.shard_lag import NOBODY, StoredCheckpoint, Unread, lags, newest

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
ZERO, ONE, TWO = (TopicPartition("noetl.events.execution", number) for number in range(3))
IDS = {"noetl.events.execution": "now"}


def checkpoint(
    shard: str, partition: TopicPartition, offset: int, topic_id: str = "now", seconds: int = 0
) -> StoredCheckpoint:
    at = NOW + timedelta(seconds=seconds)
    return StoredCheckpoint(shard, partition, topic_id, offset, offset, at)


def test_a_partition_belongs_to_the_shard_that_came_furthest() -> None:
    stored = [checkpoint("a", ZERO, 7), checkpoint("b", ZERO, 9), checkpoint("a", ONE, 3)]
    found = newest(stored, IDS)
    assert {one.partition: one.shard_id for one in found.values()} == {ZERO: "b", ONE: "a"}


def test_a_checkpoint_of_a_topic_made_anew_does_not_count() -> None:
    stored = [checkpoint("a", ZERO, 700, topic_id="before"), checkpoint("b", ZERO, 1)]
    assert newest(stored, IDS)[ZERO].shard_id == "b"
    assert newest(stored, {"noetl.events.execution": None}) == {}


def test_a_shard_is_behind_by_all_messages_and_by_the_oldest_one_s_age() -> None:
    furthest = newest([checkpoint("a", ZERO, 7, seconds=-9), checkpoint("a", ONE, 3)], IDS)
    unread = {
        ZERO: Unread(4, NOW - timedelta(seconds=2)),
        ONE: Unread(1, NOW - timedelta(seconds=30)),
        TWO: Unread(5, NOW - timedelta(seconds=1)),
    }
    nobody, found = lags(furthest, unread, NOW)
    assert (nobody.shard_id, nobody.messages, nobody.updated_at) == (NOBODY, 5, None)
    assert (found.shard_id, found.messages, found.seconds) == ("a", 5, 30.0)
    assert (found.updated_at, len(found.partitions)) == (NOW, 2)


def test_a_shard_that_has_read_all_is_not_behind() -> None:
    (found,) = lags(newest([checkpoint("a", ZERO, 7)], IDS), {ZERO: Unread(0, None)}, NOW)
    assert (found.messages, found.seconds) == (0, 0.0)
