"""Comparison of a topic with the ledger, with a topic that counts its reads."""

from __future__ import annotations

from typing import Any

from streams.trigger.reconcile import JOINED, LedgerGap, joined_holes, reconcile


class CountingTopic:
    """Records at all offsets but every tenth, where transactions end."""

    topic = "orders"

    def __init__(self, end: int) -> None:
        self._end, self.reads = end, 0

    def committed(self) -> dict[int, int]:
        return {0: self._end}

    def limits(self) -> dict[int, tuple[int, int]]:
        return {0: (0, self._end)}

    def offsets(self, partition: int, within: tuple[int, int]) -> list[int]:
        self.reads += 1
        return [offset for offset in range(*within) if offset % 10]


class Ledger:
    """Has every record but one."""

    async def count(self, *_: object) -> tuple[int, int]:
        return 0, 0

    async def missing(self, topic_id: str, partition: int, within: Any, reader: str) -> Any:
        return [
            (offset, offset + 1) for offset in range(*within) if offset % 10 == 0 or offset == 25
        ]


async def test_the_markers_of_many_transactions_are_read_in_one_pass() -> None:
    topic: Any = CountingTopic(5000)
    ledger: Any = Ledger()
    report = await reconcile(topic, "id", ledger, reader="7")
    assert topic.reads == 1
    assert report.sides[0].gaps == (LedgerGap(0, 25, 25, 1, "missing"),)


def test_holes_far_from_each_other_are_read_alone() -> None:
    far = 10 + JOINED + 1
    holes = [(0, 1), (9, 10), (far, far + 5)]
    assert list(joined_holes(holes)) == [holes[:2], holes[2:]]
