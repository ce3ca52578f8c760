"""Comparison of the broker's trigger records with the ledger."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from streams.trigger.broker import TriggerTopic
from streams.trigger.lookup import LedgerReader, Range

JOINED = 10_000
"""Holes that are closer than this many offsets are read in one pass: every transaction leaves
one, and each pass costs round trips."""


@dataclass(frozen=True, slots=True)
class LedgerGap:
    """Records on the broker without a row in the ledger."""

    partition: int
    first: int
    last: int
    records: int
    state: Literal["missing", "waiting"]
    """`waiting`: the group has not reached them. `missing`: it has passed them."""


@dataclass(frozen=True, slots=True)
class Side:
    """One partition, on the broker and in the ledger."""

    partition: int
    begin: int
    end: int
    committed: int | None
    entered: int
    beyond: int
    """Rows beyond the end: records that the broker has lost."""
    gaps: tuple[LedgerGap, ...]

    @property
    def expired(self) -> int:
        """Offsets that the broker dropped before the group reached them."""
        return max(0, self.begin - (self.begin if self.committed is None else self.committed))


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """A whole topic."""

    topic: str
    topic_id: str
    sides: tuple[Side, ...]

    @property
    def missing(self) -> int:
        """Records that the group passed without entering."""
        return _sum(self.sides, "missing")

    @property
    def waiting(self) -> int:
        """Records that were not processed yet."""
        return _sum(self.sides, "waiting")

    @property
    def beyond(self) -> int:
        """Rows of records beyond the broker's end."""
        return sum(side.beyond for side in self.sides)

    @property
    def expired(self) -> int:
        """Offsets that were dropped unread."""
        return sum(side.expired for side in self.sides)

    @property
    def is_whole(self) -> bool:
        """Return whether no record is lost: all are processed or waiting."""
        return not (self.missing or self.beyond or self.expired)


def _sum(sides: Iterable[Side], state: str) -> int:
    return sum(gap.records for side in sides for gap in side.gaps if gap.state == state)


async def reconcile(
    topic: TriggerTopic, topic_id: str, ledger: LedgerReader, *, reader: str = ""
) -> ReconcileReport:
    """Compare the broker's records with the ledger's rows of a reader.

    Raises:
        Unavailable: the broker or the database cannot be reached.
    """
    # Positions first: a record processed meanwhile counts as entered, never as missing.
    committed = await asyncio.to_thread(topic.committed)
    limits = await asyncio.to_thread(topic.limits)
    sides = []
    for number, within in limits.items():
        entered, beyond = await ledger.count(topic_id, number, within, reader)
        at, gaps = committed.get(number), []
        holes = await ledger.missing(topic_id, number, within, reader)
        for joined in joined_holes(holes):
            around = joined[0][0], joined[-1][1]
            found = await asyncio.to_thread(topic.offsets, number, around)
            gaps += [gap for one in joined for gap in gaps_of(number, _part(found, one), at or 0)]
        sides.append(Side(number, *within, at, entered, beyond, tuple(gaps)))
    return ReconcileReport(topic.topic, topic_id, tuple(sides))


def joined_holes(holes: Sequence[Range]) -> Iterator[Sequence[Range]]:
    """Group ordered holes that are near each other."""
    joined: list[Range] = []
    for hole in holes:
        if joined and hole[0] - joined[-1][1] > JOINED:
            yield joined
            joined = []
        joined.append(hole)
    if joined:
        yield joined


def _part(offsets: Sequence[int], within: Range) -> Sequence[int]:
    return offsets[bisect_left(offsets, within[0]) : bisect_left(offsets, within[1])]


def gaps_of(partition: int, offsets: Sequence[int], committed: int) -> Iterator[LedgerGap]:
    """Group offsets without a row into gaps: adjacent, and on the same side of `committed`."""
    for first, until in _runs(offsets, committed):
        run = offsets[first:until]
        state: Literal["missing", "waiting"] = "missing" if run[0] < committed else "waiting"
        yield LedgerGap(partition, run[0], run[-1], len(run), state)


def _runs(offsets: Sequence[int], committed: int) -> Iterator[Range]:
    start = 0
    for at in range(1, len(offsets) + 1):
        if at < len(offsets):
            passed = offsets[at - 1] < committed
            same = offsets[at] == offsets[at - 1] + 1 and passed == (offsets[at] < committed)
            if same:
                continue
        if at > start:
            yield start, at
        start = at
