"""A feed of Kafka topics that is opened and closed while its process runs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import uuid4

from streams.kafka.feed.port import Notice, no_notice
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.feed.topics import TopicFeed, started
from streams.kafka.transport.app import Membership, application
from streams.kafka.transport.consumer import ConsumerOptions
from streams.kafka.transport.delivery import TopicDelivery

START_S, STOP_S = 60.0, 15.0


class KafkaFeed(TopicFeed):
    """Topics as a member of a group, in a Faust application of their own; a context manager.

    Its agent passes on to `next_batch`. A role's own topics are read by the agent of the
    role's process instead.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str],
        *,
        group: str,
        instance: str,
        on_assigned: Notice = no_notice,
        on_revoked: Notice = no_notice,
        max_span: int = 4000,
        max_records: int = 500,
        idle_s: float = 0.5,
        fetch_wait_ms: int = 250,
    ) -> None:
        self._folder = Path(gettempdir()) / f"streams-feed-{uuid4().hex}"
        membership = Membership(
            bootstrap=bootstrap,
            group=group,
            instance=instance,
            topics=tuple(topics),
            folder=self._folder,
            options=ConsumerOptions(fetch_wait_ms=fetch_wait_ms, max_span=max_span),
            max_records=max_records,
        )
        app = application(membership, loop=asyncio.get_running_loop())
        super().__init__(
            app, on_assigned=on_assigned, on_revoked=on_revoked, max_records=max_records
        )
        self._idle_s = idle_s
        self._deliveries: asyncio.Queue[TopicDelivery] = asyncio.Queue()
        self._delivery = TopicDelivery()
        self._failure: BaseException | None = None
        self._has_given = False
        app.bind(self._pass_on)
        app.on_failure = self._fail

    async def __aenter__(self) -> KafkaFeed:
        self._folder.mkdir(mode=0o700)
        try:
            await started(self._app, self, within_s=START_S)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    async def next_batch(self) -> Batch:
        """Wait for records and return them; empty after the idle timeout.

        Raises:
            FeedUnavailable: the broker refuses this consumer; retrying will not help.
        """
        self._end_batch()
        if self._failure is not None:
            raise self.unavailable(self._failure)
        await self.notify()
        if not (batch := self._delivery.take(self._max_records)):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._idle_s):
                    self._delivery = await self._deliveries.get()
            await self.notify()
            batch = self._delivery.take(self._max_records)
        if batch:
            self._app.consumer.readings.begin()
            self._has_given = True
        return batch

    async def _pass_on(self, stream: Any) -> None:
        async for delivery in stream:
            self._deliveries.put_nowait(delivery)

    def _fail(self, reason: BaseException) -> None:
        self._failure = self._failure or reason

    def _end_batch(self) -> None:
        """Count the last batch as handled."""
        if self._has_given:
            self._app.consumer.readings.end()
            self._has_given = False

    async def _stop(self) -> None:
        self._end_batch()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await self._app.stop()
        finally:
            self._app.release()
            shutil.rmtree(self._folder, ignore_errors=True)
