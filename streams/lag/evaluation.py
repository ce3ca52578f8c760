"""Evaluation of a partition's lag by Burrow's rules over a sliding window of commits.

The rules are those of Burrow (https://github.com/linkedin/Burrow/wiki/Consumer-Lag-Evaluation-Rules),
written anew. Additions are marked "ours" below; docs/lag.md has their reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

WINDOW_COUNT = 10
MIN_DISTANCE_MS = 1000
"""Commits closer than this are one, as with Burrow's `min-distance`."""
SILENCE_MS = 10_000


class LagStatus(IntEnum):
    """Status of a partition, from best to worst, as Burrow orders them."""

    OK = 0
    WARN = 1
    STOP = 2
    STALL = 3
    REWIND = 4

    @property
    def level(self) -> str:
        """OK, WARN or ERR, which is the status of a group."""
        return "ERR" if self > LagStatus.WARN else self.name


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A committed offset, and the lag at that time; None if it is unknown."""

    offset: int
    at_ms: int
    lag: int | None = None


def window_of(
    commits: Iterable[OffsetCommit],
    *,
    count: int = WINDOW_COUNT,
    min_distance_ms: int = MIN_DISTANCE_MS,
) -> tuple[OffsetCommit, ...]:
    """Return the newest `count` commits in order of time.

    Of the commits within `min_distance_ms` of a first one, only the newest remains. A commit
    that goes back is never merged: the rewind would be lost.
    """
    kept: list[OffsetCommit] = []
    began_ms = 0
    for commit in sorted(commits, key=lambda one: one.at_ms):
        is_close = bool(kept) and commit.at_ms - began_ms < min_distance_ms
        if is_close and commit.offset >= kept[-1].offset and not _goes_back(kept):
            kept[-1] = commit
        else:
            kept.append(commit)
            began_ms = commit.at_ms
    return tuple(kept[-count:])


def evaluate(
    commits: Sequence[OffsetCommit],
    *,
    lag: int,
    now_ms: int,
    recent_ends: Iterable[int] = (),
    has_owner: bool = True,
    allowed_lag: int = 0,
    silence_ms: int = SILENCE_MS,
) -> LagStatus:
    """Return the status of a partition.

    `recent_ends` are ends of the partition in the recent past: a group that was at one of them
    had no lag then, so it has not stopped. A group stopped if it committed nothing for
    `silence_ms` and for longer than the window lasted; without an owner, `SILENCE_MS` suffices.
    """
    if lag <= allowed_lag or not commits:
        return LagStatus.OK
    if len(commits) > 1 and commits[-1].offset < commits[-2].offset:
        return LagStatus.REWIND  # ours: a reset stays one until the group commits again
    had_no_lag = recently_without_lag(commits, recent_ends)
    if is_stopped(commits, now_ms, silence_ms) and not had_no_lag:
        return LagStatus.STOP
    rewound_at = rewind_index(commits)
    if rewound_at is not None and not is_recovered(commits, rewound_at):
        return LagStatus.REWIND
    if not has_owner and is_silent(commits, now_ms) and not had_no_lag:
        return LagStatus.STOP  # ours: nobody is there who could commit
    # Ours: one commit says nothing about progress.
    if len(commits) > 1 and always_has_lag(commits, allowed_lag):
        if is_stalled(commits):
            return LagStatus.STALL
        if never_decreases(commits):
            return LagStatus.WARN
    return LagStatus.OK


def always_has_lag(commits: Iterable[OffsetCommit], allowed_lag: int = 0) -> bool:
    """Rule 1: a partition that had no lag at any commit of the window is in order."""
    return all(one.lag is None or one.lag > allowed_lag for one in commits)


def rewind_index(commits: Sequence[OffsetCommit]) -> int | None:
    """Rule 2: return the index of the first commit that goes back."""
    pairs = pairwise(commits)
    return next((i for i, (a, b) in enumerate(pairs, 1) if b.offset < a.offset), None)


def is_recovered(commits: Sequence[OffsetCommit], rewound_at: int) -> bool:
    """Rule 2, second part: the group is again where it was before it went back."""
    before = commits[rewound_at - 1].offset
    return any(one.offset >= before for one in commits[rewound_at:])


def is_stopped(commits: Sequence[OffsetCommit], now_ms: int, silence_ms: int = 0) -> bool:
    """Rule 3: nothing was committed for longer than the window lasted.

    Ours: and for at least `silence_ms`, since a window of few commits may be very short.
    """
    span = commits[-1].at_ms - commits[0].at_ms
    return now_ms - commits[-1].at_ms > max(span, silence_ms)


def is_silent(commits: Sequence[OffsetCommit], now_ms: int) -> bool:
    """Return whether nothing was committed for `SILENCE_MS`."""
    return now_ms - commits[-1].at_ms > SILENCE_MS


def is_stalled(commits: Sequence[OffsetCommit]) -> bool:
    """Rule 4: all commits are of the same offset."""
    return all(one.offset == commits[0].offset for one in commits)


def never_decreases(commits: Iterable[OffsetCommit]) -> bool:
    """Rule 5: the offsets advance, but the known lag is never less than before."""
    known = [one.lag for one in commits if one.lag is not None]
    return all(later >= earlier for earlier, later in pairwise(known))


def recently_without_lag(commits: Sequence[OffsetCommit], recent_ends: Iterable[int]) -> bool:
    """Return whether the newest commit was at the end of the partition in the recent past."""
    return any(end <= commits[-1].offset for end in recent_ends)


def _goes_back(commits: Sequence[OffsetCommit]) -> bool:
    return len(commits) > 1 and commits[-1].offset < commits[-2].offset
