"""The first place where two chains differ, found by bisection. Pure apart from its port."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Chain(Protocol):
    """The chain of a root, place by place."""

    async def at(self, seq: int) -> bytes:
        """Return the chain at a place; `seq` begins at 1.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...


class Bisection(NamedTuple):
    """The first place where two chains differ, and how many places were compared."""

    seq: int | None
    """None: they are equal."""
    comparisons: int


async def first_divergence(a: Chain, b: Chain, length: int) -> Bisection:
    """Compare two chains up to `length`.

    Each link contains the one before, so chains that differ at a place differ at every later
    one: ⌈log2(length + 1)⌉ comparisons find the first, 17 for 100,000 links.
    """
    equal, different, comparisons = 0, length + 1, 0
    while different - equal > 1:
        middle = (equal + different) // 2
        comparisons += 1
        if await a.at(middle) == await b.at(middle):
            equal = middle
        else:
            different = middle
    return Bisection(None if different > length else different, comparisons)
