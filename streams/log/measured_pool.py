"""A connection pool that records how many callers it serves at once."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import asyncpg

from streams.metrics.declared import POOL_DEPTH
from streams.metrics.metric import Sample
from streams.metrics.recent import RecentMaximum

_MAX_QUERIES, _MAX_IDLE_S = 50_000, 300.0
"""Those of `asyncpg.create_pool`."""


class MeasuredPool(asyncpg.Pool):  # type: ignore[misc]  # the driver is untyped
    """Its depth is the number of connections in use, and of callers that wait for one."""

    def __init__(self, dsn: str, *, name: str, **options: object) -> None:
        super().__init__(
            dsn,
            **{
                "max_queries": _MAX_QUERIES,
                "max_inactive_connection_lifetime": _MAX_IDLE_S,
                "loop": None,
                "record_class": asyncpg.Record,
                **options,
            },
        )
        self._name, self._waiting = name, 0
        self._depth = RecentMaximum(monotonic)

    async def _acquire(self, timeout: float | None) -> object:  # noqa: ASYNC109 - the driver's
        self._waiting += 1
        self._depth.add(self._waiting + self.get_size() - self.get_idle_size())
        try:
            return await super()._acquire(timeout)
        finally:
            self._waiting -= 1

    def samples(self) -> Iterator[Sample]:
        """Yield the highest recent depth."""
        yield Sample(POOL_DEPTH, self._depth.value, (self._name,))
