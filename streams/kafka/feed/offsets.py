"""Which offset of a partition may be committed while its records finish in any order."""

from __future__ import annotations

from collections import deque


class Offsets:
    """The records of one partition that were delivered and may not be committed past yet.

    The span from the lowest unfinished record to the newest is kept, since what finished
    above an unfinished one still comes again after a crash.
    """

    __slots__ = ("_span", "_unfinished")

    def __init__(self) -> None:
        self._span: deque[int] = deque()
        self._unfinished: set[int] = set()

    def deliver(self, offset: int) -> None:
        """Note that the record at `offset` was handed out; offsets arrive in order."""
        assert not self._span or offset > self._span[-1], "a partition is read in order"
        self._span.append(offset)
        self._unfinished.add(offset)

    def finish(self, offset: int) -> bool:
        """Note that the record at `offset` need not come again; False if that is no news."""
        if offset not in self._unfinished:
            return False
        self._unfinished.remove(offset)
        while self._span and self._span[0] not in self._unfinished:
            self._span.popleft()
        return True

    def committable(self, position: int) -> int:
        """Return the offset to begin at after a crash, given that reading is at `position`.

        With nothing unfinished that is the position itself, which lies past the markers of
        transactions, so that an idle partition has no lag.
        """
        return self._span[0] if self._span else position

    @property
    def span(self) -> int:
        """How many records would come again, at most, if the process ended now."""
        return len(self._span)
