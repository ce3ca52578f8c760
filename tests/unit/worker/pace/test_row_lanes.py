"""Lanes of a frame: rows that wait leave theirs to others, and the frame its slot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from streams.worker.pace.lanes import RowLanes


class Slot:
    """A worker's slot, and how often it was released."""

    def __init__(self) -> None:
        self.is_released, self.count = False, 0

    @contextmanager
    def released(self) -> Iterator[None]:
        assert not self.is_released
        self.is_released, self.count = True, self.count + 1
        try:
            yield
        finally:
            self.is_released = False


async def test_the_slot_is_released_while_all_rows_wait() -> None:
    slot = Slot()
    lanes = RowLanes(2, slot.released)
    lanes.enter()
    lanes.enter()
    with lanes.released():
        assert not slot.is_released, "another row runs"
        with lanes.released():
            assert slot.is_released
        assert not slot.is_released
    assert slot.count == 1


async def test_the_slot_is_released_when_the_last_running_row_ends() -> None:
    slot = Slot()
    lanes = RowLanes(2, slot.released)
    lanes.enter()
    lanes.enter()
    with lanes.released():
        lanes.leave()
        assert slot.is_released


async def test_a_waiting_row_leaves_its_lane_to_the_next() -> None:
    started: list[int] = []
    lanes = RowLanes(2)

    def start() -> None:
        if len(started) < 3:
            lanes.enter()
            started.append(1)

    start()
    start()
    lanes.start_with(start)
    with lanes.released():
        assert len(started) == 3
        with lanes.released():
            assert len(started) == 3, "there are no more rows"


async def test_a_row_that_is_back_waits_for_a_lane() -> None:
    lanes = RowLanes(1)
    lanes.enter()
    rest = asyncio.ensure_future(lanes.rest(0.01))
    await asyncio.sleep(0)
    lanes.enter()  # the next row takes the lane
    await asyncio.sleep(0.05)
    assert not rest.done()
    assert lanes.gives_way
    lanes.leave()
    await asyncio.wait_for(rest, 1)
    assert not lanes.gives_way


async def test_a_cancelled_row_does_not_swallow_a_lane() -> None:
    lanes = RowLanes(1)
    lanes.enter()
    lanes.enter()
    rests = [asyncio.ensure_future(lanes.rest(0.0)) for _ in range(2)]
    lanes.enter()
    await asyncio.sleep(0.02)
    rests[0].cancel()
    await asyncio.sleep(0)
    lanes.leave()  # the cancelled row's lane
    assert not rests[1].done()
    lanes.leave()
    await asyncio.wait_for(rests[1], 1)
