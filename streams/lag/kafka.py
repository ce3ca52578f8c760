"""Takes readings of the consumer groups of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from streams.errors import Refused
from streams.lag.broker_queries import BrokerQueries, GroupState, OffsetLimits
from streams.lag.commit_history import CommitHistory
from streams.lag.evaluation import OffsetCommit, window_of
from streams.lag.first_records import NextRecord, Partition, next_records
from streams.lag.model import GroupReading, PartitionReading, PositionSample

SAMPLES_COUNT = 60
T = TypeVar("T")
_Key = tuple[str, Partition]
_Times = dict[tuple[Partition, int], int]


class GroupUnknown(Refused):
    """A group that the cluster does not have."""

    def __init__(self, groups: Iterable[str], known: Collection[str]) -> None:
        names = ", ".join(sorted(groups))
        super().__init__(
            f"the cluster has no consumer group {names}; it has: {', '.join(known) or 'none'}"
        )


class ClusterLag:
    """Readings of groups, with what was seen before; use it as an async context manager."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._history = CommitHistory(bootstrap)
        self._samples: dict[_Key, deque[PositionSample]] = defaultdict(
            lambda: deque(maxlen=SAMPLES_COUNT)
        )
        self._ends_at: _Times = {}
        # One thread, so that closing waits for a running call.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lag")

    async def __aenter__(self) -> ClusterLag:
        self._queries = await self._call(lambda: BrokerQueries(self._bootstrap))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._call(self._history.close)
        self._thread.shutdown(wait=False)

    @property
    def problem(self) -> str | None:
        """Why there are no commits, and so neither status nor rates; None if there are."""
        return self._history.problem

    async def peek(
        self, positions: Mapping[Partition, int], *, is_committed: bool, most: int
    ) -> dict[Partition, list[NextRecord]]:
        """Return up to `most` records of each partition from an offset on.

        Raises:
            BrokerUnavailable: Kafka does not respond.
        """
        return await self._call(
            lambda: next_records(self._bootstrap, positions, is_committed=is_committed, most=most)
        )

    async def offset_limits(self, prefix: str) -> dict[Partition, OffsetLimits]:
        """Return the limits of all partitions of topics whose names begin with `prefix`.

        Raises:
            BrokerUnavailable: Kafka does not respond.
        """
        return await self._call(lambda: self._queries.limits(self._queries.partitions(prefix)))

    async def read(self, groups: Collection[str] = ()) -> tuple[GroupReading, ...]:
        """Return readings of these groups, or of all.

        Raises:
            GroupUnknown: the cluster does not have one of them.
            BrokerUnavailable: Kafka does not respond.
        """
        return await self._call(lambda: self._read(groups))

    def _read(self, groups: Collection[str]) -> tuple[GroupReading, ...]:
        queries, known = self._queries, self._queries.groups()
        if missing := set(groups) - set(known):
            raise GroupUnknown(missing, known)
        wanted = sorted(set(groups) or known)
        states = queries.describe(wanted)
        # Before the ends, so that a lag is never negative.
        committed = queries.committed(wanted)
        partitions = {one for its in committed.values() for one in its}
        partitions |= {one for state in states.values() for one in state.assigned}
        limits = queries.limits(partitions)
        firsts = self._firsts(committed, limits)
        commits = self._commits(wanted, committed, limits)
        at_ms = int(time.time() * 1000)
        readings = [
            _reading(group, states[group], committed[group], limits, firsts, commits, at_ms)
            for group in wanted
        ]
        # A group that neither has members nor offsets is one of Connect's workers, or new.
        return tuple(self._sampled(one) for one in readings if one.partitions or one.members)

    def _firsts(
        self,
        committed: Mapping[str, Mapping[Partition, int]],
        limits: Mapping[Partition, OffsetLimits],
    ) -> dict[tuple[Partition, int, bool], int | None]:
        """Return the time of the first record from each committed offset on.

        A consumer reads each partition once, so groups at other offsets take another turn.
        """
        found: dict[tuple[Partition, int, bool], int | None] = {}
        for positions in _turns(committed, limits):
            for is_committed in (False, True):
                records = next_records(self._bootstrap, positions, is_committed=is_committed)
                for one, its in records.items():
                    key = (one, positions[one], is_committed)
                    found[key] = _first_ms(its)
        return found

    def _commits(
        self,
        groups: Collection[str],
        committed: Mapping[str, Mapping[Partition, int]],
        limits: Mapping[Partition, OffsetLimits],
    ) -> dict[_Key, tuple[OffsetCommit, ...]]:
        """Return the window of commits of each partition, with the lag at each."""
        windows: dict[_Key, tuple[OffsetCommit, ...]] = {}
        for (group, topic, number), commits in self._history.read(groups).items():
            one = (topic, number)
            if one in limits and one in committed[group]:
                windows[group, one] = window_of(commits)
        self._look_up_ends(windows)
        return {
            key: tuple(
                replace(commit, lag=max(0, self._end_at(key[1], commit, limits) - commit.offset))
                for commit in window
            )
            for key, window in windows.items()
        }

    def _end_at(
        self, one: Partition, commit: OffsetCommit, limits: Mapping[Partition, OffsetLimits]
    ) -> int:
        return self._ends_at.get((one, commit.at_ms), limits[one].end)

    def _look_up_ends(self, windows: Mapping[_Key, tuple[OffsetCommit, ...]]) -> None:
        """Look up the ends at the times of commits, by the timestamps of the records."""
        wanted = {(key[1], one.at_ms) for key, window in windows.items() for one in window}
        self._ends_at = {key: end for key, end in self._ends_at.items() if key in wanted}
        missing = wanted - self._ends_at.keys()
        while missing:
            turn = dict(missing)
            for one, end in self._queries.ends_at(turn).items():
                if end >= 0:  # else no later record: the end is still the same
                    self._ends_at[one, turn[one]] = end
            missing -= set(turn.items())

    def _sampled(self, reading: GroupReading) -> GroupReading:
        partitions = []
        for one in reading.partitions:
            if one.committed is None:
                partitions.append(one)
                continue
            samples = self._samples[reading.group, (one.topic, one.partition)]
            samples.append(PositionSample(reading.at_ms, one.committed, one.end))
            partitions.append(replace(one, samples=tuple(samples)))
        return replace(reading, partitions=tuple(partitions))

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _turns(
    committed: Mapping[str, Mapping[Partition, int]], limits: Mapping[Partition, OffsetLimits]
) -> list[dict[Partition, int]]:
    """Return the positions to read from: each partition once in each turn."""
    turns: list[dict[Partition, int]] = []
    wanted = {
        (one, offset)
        for positions in committed.values()
        for one, offset in positions.items()
        if one in limits and offset < limits[one].end
    }
    for one, offset in sorted(wanted):
        turn = next((turn for turn in turns if one not in turn), None)
        if turn is None:
            turns.append(turn := {})
        turn[one] = offset
    return turns


def _reading(
    group: str,
    state: GroupState,
    committed: Mapping[Partition, int],
    limits: Mapping[Partition, OffsetLimits],
    firsts: Mapping[tuple[Partition, int, bool], int | None],
    commits: Mapping[_Key, tuple[OffsetCommit, ...]],
    at_ms: int,
) -> GroupReading:
    partitions = []
    for one in sorted((committed.keys() | state.assigned.keys()) & limits.keys()):
        offset, limit = committed.get(one), limits[one]
        partitions.append(
            PartitionReading(
                topic=one[0],
                partition=one[1],
                committed=offset,
                start=limit.start,
                end=limit.end,
                stable_end=limit.stable_end,
                first_ms=None if offset is None else firsts.get((one, offset, False)),
                first_stable_ms=None if offset is None else firsts.get((one, offset, True)),
                owner=state.assigned.get(one),
                commits=commits.get((group, one), ()),
            )
        )
    return GroupReading(
        group=group,
        state=state.state,
        at_ms=at_ms,
        partitions=tuple(partitions),
        members=state.owners,
    )


def _first_ms(records: list[NextRecord]) -> int | None:
    return records[0].timestamp_ms if records else None
