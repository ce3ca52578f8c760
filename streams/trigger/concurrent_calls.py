"""Calls of one function for many records, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Argument = TypeVar("Argument")
Answer = TypeVar("Answer")
AT_ONCE = 16


async def call_for_each(
    function: Callable[[Argument], Awaitable[Answer]], arguments: Sequence[Argument]
) -> list[Answer]:
    """Return the answers in the order of the arguments.

    Raises:
        Exception: that of the first argument whose call failed; no call is left running.
    """
    found: list[Answer] = []
    for first in range(0, len(arguments), AT_ONCE):
        part = arguments[first : first + AT_ONCE]
        for answer in await asyncio.gather(*map(function, part), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            found.append(answer)
    return found
