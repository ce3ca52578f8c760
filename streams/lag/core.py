"""Computes lag from readings: messages, seconds, rates, time to drain, skew, trend, status."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from streams.lag.evaluation import SILENCE_MS, WINDOW_COUNT, LagStatus, evaluate, window_of
from streams.lag.model import (
    NEVER,
    GroupLag,
    GroupReading,
    LagSum,
    Owner,
    PartitionReading,
    PositionSample,
    TopicPartitionLag,
    Trend,
)

RATE_WINDOW_MS = 300_000
"""Rates are of this time at most; older commits say little about now."""
NO_OWNER = "-"


def lag_of(reading: GroupReading, *, silence_ms: int = SILENCE_MS) -> GroupLag:
    """Return the lag of a group that commits at least every `silence_ms` while it has work."""
    partitions = tuple(
        partition_lag(one, reading.at_ms, silence_ms=silence_ms) for one in reading.partitions
    )
    by_member: dict[str, list[TopicPartitionLag]] = {one.member_id: [] for one in reading.members}
    for one in partitions:
        by_member.setdefault(_member_id(one.owner), []).append(one)
    return GroupLag(
        total=sum_of(reading.group, partitions),
        state=reading.state,
        partitions=partitions,
        topics=_sums(partitions, lambda one: one.topic),
        members=tuple(sum_of(name, its) for name, its in sorted(by_member.items())),
        owners=reading.members,
    )


def partition_lag(
    reading: PartitionReading, now_ms: int, *, silence_ms: int = SILENCE_MS
) -> TopicPartitionLag:
    """Return the lag of a group on one partition."""
    committed, commits = reading.committed, window_of(reading.commits)
    lag = None if committed is None else max(0, reading.end - committed)
    stable = None if committed is None else max(0, reading.stable_end - committed)
    samples = _samples(reading, now_ms)
    produce, consume = _rates(samples)
    return TopicPartitionLag(
        topic=reading.topic,
        partition=reading.partition,
        owner=reading.owner,
        committed=committed,
        end=reading.end,
        stable_end=reading.stable_end,
        messages=lag,
        messages_stable=stable,
        seconds=None if lag is None else _age_s(lag, reading.first_ms, now_ms),
        seconds_stable=None if stable is None else _age_s(stable, reading.first_stable_ms, now_ms),
        deleted_count=0 if committed is None else max(0, reading.start - committed),
        produce_rate=produce,
        consume_rate=consume,
        drain_s=drain_s(lag, produce, consume),
        trend=_trend(samples),
        status=evaluate(
            commits,
            # Offsets without records (markers of transactions) are nothing to consume.
            lag=0 if reading.first_ms is None else lag or 0,
            now_ms=now_ms,
            recent_ends=_recent_ends(reading, now_ms),
            has_owner=reading.owner is not None,
            silence_ms=silence_ms,
        ),
        complete=min(1.0, len(commits) / WINDOW_COUNT),
    )


def drain_s(lag: int | None, produce: float | None, consume: float | None) -> float | None:
    """Return the seconds until a lag is gone at these rates; `NEVER` if it does not shrink."""
    if lag is None:
        return None
    if lag == 0:
        return 0.0
    if produce is None or consume is None:
        return None
    return lag / (consume - produce) if consume > produce else NEVER


def sum_of(name: str, partitions: Sequence[TopicPartitionLag]) -> LagSum:
    """Return the lag of several partitions as one."""
    lags = [one.messages for one in partitions if one.messages is not None]
    drains = [one.drain_s for one in partitions if one.drain_s is not None]
    return LagSum(
        name=name,
        partition_count=len(partitions),
        messages=sum(lags),
        messages_stable=sum(one.messages_stable or 0 for one in partitions),
        seconds=max((one.seconds or 0.0 for one in partitions), default=0.0),
        seconds_stable=max((one.seconds_stable or 0.0 for one in partitions), default=0.0),
        produce_rate=_total(one.produce_rate for one in partitions),
        consume_rate=_total(one.consume_rate for one in partitions),
        drain_s=max(drains, default=None),
        skew=round(max(lags) * len(lags) / sum(lags), 3) if any(lags) else 0.0,
        trend=_trend_of(partitions),
        status=max((one.status for one in partitions), default=LagStatus.OK),
    )


def _sums(
    partitions: Iterable[TopicPartitionLag], name_of: Callable[[TopicPartitionLag], str]
) -> tuple[LagSum, ...]:
    groups: dict[str, list[TopicPartitionLag]] = defaultdict(list)
    for one in partitions:
        groups[name_of(one)].append(one)
    return tuple(sum_of(name, its) for name, its in sorted(groups.items()))


def _member_id(owner: Owner | None) -> str:
    return NO_OWNER if owner is None else owner.member_id


def _age_s(lag: int, first_ms: int | None, now_ms: int) -> float:
    """Return the age of the first unconsumed record; offsets without records have none."""
    if not lag or first_ms is None:
        return 0.0
    return max(0.0, (now_ms - first_ms) / 1000)


def _recent_ends(reading: PartitionReading, now_ms: int) -> tuple[int, ...]:
    """Return ends of the recent past; the first unconsumed record was not there before its time."""
    since = now_ms - SILENCE_MS
    seen = tuple(one.end for one in reading.samples if one.at_ms >= since)
    if reading.committed is None or reading.first_ms is None or reading.first_ms < since:
        return seen
    return (*seen, reading.committed)


def _samples(reading: PartitionReading, now_ms: int) -> tuple[PositionSample, ...]:
    """Return positions over time: those observed, else those of the commits."""
    if reading.committed is None:
        return ()
    if len(reading.samples) > 1:
        return reading.samples
    known = [
        PositionSample(one.at_ms, one.offset, one.offset + one.lag)
        for one in reading.commits
        if one.lag is not None
    ]
    recent = [one for one in known if one.at_ms >= now_ms - RATE_WINDOW_MS] or known[-1:]
    return (*recent, PositionSample(now_ms, reading.committed, reading.end))


def _rates(samples: Sequence[PositionSample]) -> tuple[float | None, float | None]:
    """Return records per second produced and consumed."""
    if len(samples) < 2:
        return None, None
    first, last = samples[0], samples[-1]
    seconds = (last.at_ms - first.at_ms) / 1000
    if seconds <= 0:
        return None, None
    produced, consumed = last.end - first.end, last.committed - first.committed
    return max(0, produced) / seconds, max(0, consumed) / seconds


def _trend(samples: Sequence[PositionSample]) -> Trend:
    if len(samples) < 2:
        return Trend.UNKNOWN
    before = max(0, samples[0].end - samples[0].committed)
    now = max(0, samples[-1].end - samples[-1].committed)
    if now == before:
        return Trend.STEADY
    return Trend.GROWING if now > before else Trend.SHRINKING


def _trend_of(partitions: Iterable[TopicPartitionLag]) -> Trend:
    """Return the worst trend of any partition."""
    found = {one.trend for one in partitions}
    order = (Trend.GROWING, Trend.STEADY, Trend.SHRINKING)
    if not any(one.messages for one in partitions):
        return Trend.STEADY if found - {Trend.UNKNOWN} else Trend.UNKNOWN
    return next((one for one in order if one in found), Trend.UNKNOWN)


def _total(rates: Iterable[float | None]) -> float | None:
    known = [one for one in rates if one is not None]
    return sum(known) if known else None
