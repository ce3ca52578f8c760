"""Figures of a group's lag: messages, seconds, rates, time to drain, skew, trend."""

from __future__ import annotations

from dataclasses import replace

from streams.lag.core import lag_of, partition_lag
from streams.lag.evaluation import LagStatus, OffsetCommit
from streams.lag.model import (
    NEVER,
    GroupReading,
    Owner,
    PartitionReading,
    PositionSample,
    Trend,
)

NOW = 1_000_000_000
OWNER = Owner("member-1", "client", "worker-0", "/127.0.0.1")
READING = PartitionReading(
    topic="orders",
    partition=0,
    committed=100,
    start=0,
    end=160,
    stable_end=150,
    first_ms=NOW - 7_200_000,
    first_stable_ms=NOW - 7_200_000,
    owner=OWNER,
)


def group(*partitions: PartitionReading) -> GroupReading:
    return GroupReading(
        group="g", state="stable", at_ms=NOW, partitions=partitions, members=(OWNER,)
    )


def test_seconds_are_the_age_of_the_first_unconsumed_record() -> None:
    lag = partition_lag(READING, NOW)

    assert (lag.messages, lag.messages_stable) == (60, 50)
    assert (lag.seconds, lag.seconds_stable) == (7200.0, 7200.0)


def test_a_partition_that_is_caught_up_has_no_lag() -> None:
    done = replace(READING, committed=160, first_ms=None, first_stable_ms=None)

    lag = partition_lag(done, NOW)

    assert (lag.messages, lag.seconds, lag.drain_s, lag.status) == (0, 0.0, 0.0, LagStatus.OK)


def test_offsets_without_records_are_messages_but_no_seconds_and_no_fault() -> None:
    marker = replace(
        READING,
        committed=159,
        first_ms=None,
        first_stable_ms=None,
        owner=None,
        commits=(OffsetCommit(159, NOW - 3_600_000, 1),),
    )

    lag = partition_lag(marker, NOW)

    assert (lag.messages, lag.seconds, lag.status) == (1, 0.0, LagStatus.OK)


def test_a_partition_without_offset_is_unknown() -> None:
    lag = partition_lag(replace(READING, committed=None), NOW)

    assert (lag.messages, lag.seconds, lag.drain_s, lag.trend) == (None, None, None, Trend.UNKNOWN)


def test_records_that_retention_deleted_are_counted() -> None:
    assert partition_lag(replace(READING, start=130), NOW).deleted_count == 30


def test_rates_come_from_the_commits_and_the_ends_at_their_times() -> None:
    commits = (OffsetCommit(60, NOW - 10_000, 80), OffsetCommit(80, NOW - 5_000, 70))

    lag = partition_lag(replace(READING, commits=commits), NOW)

    assert (lag.produce_rate, lag.consume_rate) == (2.0, 4.0)
    assert (lag.drain_s, lag.trend) == (30.0, Trend.SHRINKING)


def test_a_lag_that_grows_never_drains() -> None:
    samples = (PositionSample(NOW - 10_000, 90, 100), PositionSample(NOW, 100, 160))

    lag = partition_lag(replace(READING, samples=samples), NOW)

    assert (lag.produce_rate, lag.consume_rate) == (6.0, 1.0)
    assert (lag.drain_s, lag.trend) == (NEVER, Trend.GROWING)


def test_a_stopped_group_whose_records_are_hours_apart_is_an_error() -> None:
    commits = tuple(OffsetCommit(90 + n, NOW - (10 - n) * 3_600_000, 60) for n in range(10))
    orphan = replace(READING, committed=99, commits=commits, owner=None)

    total = lag_of(group(orphan)).total

    assert (total.status, total.status.level) == (LagStatus.STOP, "ERR")


def test_records_that_just_arrived_are_not_held_against_a_group() -> None:
    idle = replace(
        READING,
        first_ms=NOW - 3_000,
        owner=None,
        commits=(OffsetCommit(100, NOW - 60_000, 0),),
    )

    assert partition_lag(idle, NOW).status is LagStatus.OK
    assert partition_lag(replace(idle, first_ms=NOW - 11_000), NOW).status is LagStatus.STOP


def test_sums_are_by_topic_and_member_with_skew() -> None:
    even = replace(READING, partition=1)
    done = replace(READING, partition=2, committed=160, first_ms=None, owner=None)

    lag = lag_of(group(READING, even, done))

    assert (lag.total.messages, lag.total.seconds, lag.total.skew) == (120, 7200.0, 1.5)
    assert [(one.name, one.messages) for one in lag.topics] == [("orders", 120)]
    assert [(one.name, one.messages) for one in lag.members] == [("-", 0), ("member-1", 120)]
