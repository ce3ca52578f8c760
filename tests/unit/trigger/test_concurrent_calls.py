"""Calls for many records, several at a time."""

from __future__ import annotations

import asyncio

import pytest

from streams.trigger.concurrent_calls import AT_ONCE, call_for_each


async def test_answers_are_in_the_order_of_the_arguments() -> None:
    async def twice(number: int) -> int:
        await asyncio.sleep(0.001 * (number % 3))
        return 2 * number

    assert await call_for_each(twice, range(3 * AT_ONCE)) == list(range(0, 6 * AT_ONCE, 2))


async def test_a_failure_leaves_no_call_running_and_begins_no_more() -> None:
    ended: list[int] = []

    async def fail_first(number: int) -> None:
        if number == 0:
            raise ValueError("first")
        await asyncio.sleep(0.001)
        ended.append(number)

    with pytest.raises(ValueError, match="first"):
        await call_for_each(fail_first, range(2 * AT_ONCE))
    assert ended == list(range(1, AT_ONCE))
