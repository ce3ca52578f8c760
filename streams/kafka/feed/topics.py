"""The topics of a Faust application as a feed: acknowledgement, lag, rebalances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import Notice, Record, Standing, TopicPartition, no_notice
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.transport.app import Application
from streams.kafka.transport.delivery import TopicDelivery

Prepare = Callable[[], Awaitable[None]]


class TopicFeed:
    """The topics that one agent reads.

    `gather_s` is a pause before each batch, for agents without latency requirements: what
    arrives meanwhile is part of it.
    """

    def __init__(
        self,
        app: Application,
        *,
        on_assigned: Notice = no_notice,
        on_revoked: Notice = no_notice,
        max_records: int = 500,
        gather_s: float = 0.0,
    ) -> None:
        self._app = app
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._max_records, self._gather_s = max_records, gather_s
        self._notices: list[tuple[Notice, frozenset[TopicPartition]]] = []
        self._notifying, self._rebalanced = asyncio.Lock(), asyncio.Event()
        app.on_assigned, app.on_revoked = self._assigned, self._revoked

    async def batches(
        self, deliveries: AsyncIterable[TopicDelivery], prepare: Prepare
    ) -> AsyncIterator[Batch]:
        """Yield the batches of a stream; `prepare` is called before those of an assignment."""
        consumer = self._app.consumer
        async for delivery in deliveries:
            if self._gather_s:
                await asyncio.sleep(self._gather_s)
            await prepare()
            while batch := delivery.take(self._max_records):
                consumer.readings.begin()
                try:
                    yield batch
                finally:
                    consumer.readings.end()

    async def notify(self) -> None:
        """Report rebalances, in order; one whose report raised is reported again.

        Raises:
            Unavailable: of whoever is notified.
        """
        if not self._notices:
            return
        async with self._notifying:
            while self._notices:
                notice, partitions = self._notices[0]
                await notice(partitions)
                self._notices.pop(0)

    async def watch_rebalances(self, prepare: Prepare) -> None:
        """Call `prepare` after each rebalance, also when no record follows."""
        while True:
            await self._rebalanced.wait()
            self._rebalanced.clear()
            await prepare()

    def acknowledge(self, records: Iterable[Record]) -> None:
        """Mark records as finished; those of lost partitions are ignored."""
        self._app.consumer.acknowledge(records)

    def standing(self) -> Standing:
        """Return the offsets between the committed position and the end, and the progress."""
        return self._app.consumer.standing()

    async def answers(self, *, within_s: float) -> bool:
        """Return whether the broker responds within this time."""
        try:
            async with asyncio.timeout(within_s):
                await self._app.consumer.answers()
        except (KafkaError, TimeoutError):
            return False
        return True

    async def seek(self, partition: TopicPartition, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first; for use by `on_assigned`.

        Raises:
            FeedUnavailable: the broker does not respond.
        """
        try:
            await self._app.consumer.move(partition, offset)
        except (KafkaError, TimeoutError) as error:
            raise self.unavailable(error) from error

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._app.consumer.readings.by_partition)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        return self._app.consumer.partition_count(topic)

    def unavailable(self, error: BaseException) -> FeedUnavailable:
        """Return the error to raise when the broker cannot be read."""
        member = self._app.membership
        todo = (
            "create the topics with `streams topics apply`"
            if isinstance(error, UnknownTopicOrPartitionError)
            else "check that Kafka is up (`streams status`)"
        )
        what = f"{member.bootstrap}: group {member.group} cannot read {', '.join(member.topics)}"
        return FeedUnavailable(f"{what}: {error!r}; {todo}")

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._notices.append((self._on_assigned, partitions))
        self._rebalanced.set()

    def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            self._notices.append((self._on_revoked, partitions))
            self._rebalanced.set()


async def started(app: Application, feed: TopicFeed, *, within_s: float) -> None:
    """Start an application; return when its partitions are assigned and its tables recovered.

    Raises:
        FeedUnavailable: the broker refuses it, or does not respond in time.
        Exception: a service of the application failed.
    """
    failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(reason: BaseException) -> None:
        if not failure.done():
            failure.set_exception(reason)

    app.on_failure, on_failure = fail, app.on_failure
    starting = asyncio.ensure_future(app.start())
    try:
        ends: list[asyncio.Future[Any]] = [starting, failure]
        await asyncio.wait(ends, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if failure.done():
            failure.result()
        if not starting.done():
            raise TimeoutError(f"not started within {within_s:g} s")
        starting.result()
    except (KafkaError, TimeoutError) as error:
        raise feed.unavailable(error) from error
    finally:
        app.on_failure = on_failure
        starting.cancel()  # not awaited: Faust may ignore it, and the process ends
