"""Delivery of a feed's batches to their handler, held while a dependency is unavailable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from streams.errors import Unavailable
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import Feed, Record, Watched
from streams.kafka.feed.record_suspects import Batch, BatchStep, RecordSuspects
from streams.retry import retry

_log = logging.getLogger(__name__)
Handle = Callable[[Batch], Awaitable[None]]
"""Handles a batch, and acknowledges its records itself, last."""
SetAside = Callable[[Record], Awaitable[None]]
"""Quarantines a record that crashed the process too often; it is acknowledged afterwards."""


class WatchedFeed(Feed, Watched, Protocol):
    """A feed with a standing."""


async def consume(feed: Feed, handle: Handle, stop: asyncio.Event, *, name: str) -> None:
    """Handle batches until `stop`, without a role process; for tests and benchmarks."""
    report = _reporter(name)
    while not stop.is_set():
        if batch := await feed.next_batch():
            await retry(lambda batch=batch: handle(batch), on_failure=report)  # type: ignore[misc]


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
        name: str,
        beat: Callable[[], None],
    ) -> None:
        self._feed, self._handle, self._set_aside = feed, handle, set_aside
        self._suspects, self._beat = suspects, beat
        self._report = _reporter(name)

    async def next_batch(self) -> Batch:
        """Return the feed's next batch; empty after the idle timeout."""
        return await retry(
            self._feed.next_batch,
            give_up=lambda error, _: isinstance(error, FeedUnavailable),
            on_failure=self._on_failure,
        )

    async def take(self, batch: Batch) -> None:
        """Handle a batch: whole, or its suspects one at a time."""
        for step in self._suspects.steps(batch):
            await retry(lambda step=step: self._attempt(step), on_failure=self._hold)  # type: ignore[misc]
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

    def _hold(self, error: Unavailable, pause_s: float) -> None:
        self._suspects.pause()
        self._on_failure(error, pause_s)

    def _on_failure(self, error: Unavailable, pause_s: float) -> None:
        self._beat()
        self._report(error, pause_s)


def _reporter(name: str) -> Callable[[Unavailable, float], None]:
    def report(error: Unavailable, pause_s: float) -> None:
        _log.warning("%s: %s; retrying in %.1f s", name, error, pause_s)

    return report
