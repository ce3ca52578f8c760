"""Delivery of a feed's batches to their handler, held while a dependency is unavailable."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar, runtime_checkable

from streams.errors import Unavailable
from streams.holds import Holds
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import Feed, Record, Watched
from streams.kafka.feed.record_suspects import Batch, BatchStep, RecordSuspects
from streams.retry import retry

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Handle = Callable[[Batch], Awaitable[None]]
"""Handles a batch, and acknowledges its records itself, last."""
SetAside = Callable[[Record], Awaitable[None]]
"""Quarantines a record that crashed the process too often; it is acknowledged afterwards."""


class WatchedFeed(Feed, Watched, Protocol):
    """A feed with a standing."""


@runtime_checkable
class PolledFeed(Feed, Protocol):
    """A feed that is asked for each batch."""

    async def next_batch(self) -> Batch:
        """Wait for records and return them; empty after the idle timeout."""
        ...


@runtime_checkable
class DeliveringFeed(Feed, Protocol):
    """A feed whose batches Faust delivers."""

    async def notify(self) -> None:
        """Report rebalances."""
        ...


class Consumption:
    """One feed of a process with the handler of its batches.

    Notices and handlers that raise `Unavailable` are retried and do not end the process.
    Meanwhile a crash is not counted against the records.
    """

    def __init__(
        self,
        feed: WatchedFeed,
        handle: Handle,
        set_aside: SetAside,
        suspects: RecordSuspects,
        *,
        holds: Holds,
        beat: Callable[[], None],
    ) -> None:
        self._feed, self._handle, self._set_aside = feed, handle, set_aside
        self._suspects, self._holds, self._beat = suspects, holds, beat

    async def batches(self) -> AsyncIterator[Batch]:
        """Yield the batches of a feed that is asked for each."""
        assert isinstance(self._feed, PolledFeed)
        while True:
            if batch := await self._held(self._feed.next_batch):
                yield batch

    async def prepare(self) -> None:
        """Report the rebalances of a feed that delivers by itself."""
        assert isinstance(self._feed, DeliveringFeed)
        await self._held(self._feed.notify)

    async def take(self, batch: Batch) -> None:
        """Handle a batch: whole, or its suspects one at a time."""
        for step in self._suspects.steps(batch):
            await retry(
                lambda step=step: self._attempt(step),  # type: ignore[misc]
                on_failure=self._hold,
                holds=self._holds,
            )
            self._suspects.end(step.batch)

    async def _attempt(self, step: BatchStep) -> None:
        self._suspects.begin(step.batch)
        if not step.is_poison:
            await self._handle(step.batch)
            return
        for record in next(iter(step.batch.values())):
            _log.error("%s crashed this process too often and is quarantined", record.address)
            await self._set_aside(record)
            self._feed.acknowledge([record])

    async def _held(self, call: Callable[[], Awaitable[_T]]) -> _T:
        return await retry(
            call,
            give_up=lambda error, _: isinstance(error, FeedUnavailable),
            on_failure=self._on_failure,
            holds=self._holds,
        )

    def _hold(self, error: Unavailable, pause_s: float) -> None:
        self._suspects.pause()
        self._on_failure(error, pause_s)

    def _on_failure(self, _: Unavailable, __: float) -> None:
        self._beat()
