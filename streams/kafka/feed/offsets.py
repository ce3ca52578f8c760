"""The committable offset of a partition whose records finish in any order."""

from __future__ import annotations

from collections import deque


class Offsets:
    """Delivered records of one partition, from the lowest unfinished one to the newest.

    Records finished above an unfinished one are included: a crash redelivers them.
    """

    __slots__ = ("_span", "_unfinished")

    def __init__(self) -> None:
        self._span: deque[int] = deque()
        self._unfinished: set[int] = set()

    def deliver(self, offset: int) -> None:
        """Record the delivery of `offset`; offsets arrive in order."""
        assert not self._span or offset > self._span[-1], "a partition is read in order"
        self._span.append(offset)
        self._unfinished.add(offset)

    def finish(self, offset: int) -> bool:
        """Mark the record at `offset` as finished; False if it already was."""
        if offset not in self._unfinished:
            return False
        self._unfinished.remove(offset)
        while self._span and self._span[0] not in self._unfinished:
            self._span.popleft()
        return True

    def committable(self, position: int) -> int:
        """Return the offset to resume at after a crash, given the read `position`.

        With nothing unfinished that is the position itself, which is past transaction markers,
        so that an idle partition has no lag.
        """
        return self._span[0] if self._span else position

    @property
    def span(self) -> int:
        """How many records at most a crash now would redeliver."""
        return len(self._span)
