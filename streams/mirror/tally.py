"""Comparison of the event topics with the log: lost, doubled and unordered events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from streams.events.model import Root


@dataclass(frozen=True, slots=True)
class MirrorVerdict:
    """Differences between the topics and the log; `first` describes one of them."""

    events_count: int
    lost_count: int
    doubled_count: int
    first: str | None = None

    @property
    def is_clean(self) -> bool:
        """Whether every event is mirrored once, in order."""
        return self.lost_count == 0 and self.doubled_count == 0


class MirrorTally:
    """Tracks each root's `seq` through the records in read order."""

    def __init__(self) -> None:
        self.by_type: Counter[str] = Counter()
        """Number of records by type of root."""
        self._starts: dict[Root, int] = {}
        self._ends: dict[Root, int] = {}
        self._lost = self._doubled = 0
        self._first: str | None = None

    @property
    def records_count(self) -> int:
        """Number of records counted."""
        return self.by_type.total()

    @property
    def truncated(self) -> Mapping[Root, int]:
        """Roots whose first record is not their first event, with its `seq`."""
        return {root: seq for root, seq in self._starts.items() if seq > 1}

    def add(self, root: Root, seq: int) -> None:
        """Count one record.

        A late one counts as lost where it was missing, and as doubled where it is found.
        """
        self.by_type[root.type] += 1
        last = self._ends.get(root)
        if last is None:
            self._starts[root] = self._ends[root] = seq
            return
        if seq <= last:
            self._doubled += 1
            self._note(f"{root} has seq {seq} after {last}")
            return
        if seq > last + 1:
            self._lost += seq - last - 1
            self._note(f"{root} has seq {seq} right after {last}")
        self._ends[root] = seq

    def against(self, heads: Mapping[Root, int], expired: Mapping[Root, int]) -> MirrorVerdict:
        """Compare with the log's newest `seq` of each root.

        `expired` has the newest `seq` of each root that the topic's retention deleted.
        """
        lost, first = self._lost, self._first
        for root, head in heads.items():
            gone = expired.get(root, 0)
            start, end = self._starts.get(root, gone + 1), self._ends.get(root, gone)
            missing = max(0, start - 1 - gone) + max(0, head - end)
            if missing and first is None:
                first = f"{root} has {head} events, {missing} of them are missing"
            lost += missing
        return MirrorVerdict(self.records_count, lost, self._doubled, first)

    def _note(self, what: str) -> None:
        self._first = self._first or what
