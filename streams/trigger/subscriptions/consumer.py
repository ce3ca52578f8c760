"""Consumption of one subscription's topic, from the place that the ledger has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from streams.background import in_background
from streams.catalog.subscription_state import SubscriptionState
from streams.errors import Refused, Unavailable
from streams.kafka.feed.port import Record, TopicPartition
from streams.kafka.feed.process import RoleProcess
from streams.kafka.feed.record_suspects import Batch
from streams.kafka.feed.temporary import TemporaryConsumption
from streams.kafka.feed.watchdog import LIMIT_S
from streams.retry import FIRST_PAUSE_S, LONGEST_PAUSE_S
from streams.subscription.interpret import MessageReader
from streams.subscription.model import Subscription
from streams.trigger.loop import Trigger
from streams.trigger.port import TopicIds
from streams.trigger.subscriptions.admission import Admission
from streams.trigger.subscriptions.port import (
    SeekableFeed,
    SubscriptionLedger,
    SubscriptionPorts,
    SubscriptionSource,
)
from streams.trigger.subscriptions.starting import (
    SubscribedTopic,
    fresh_topic_id,
    subscription_trigger,
)

_log = logging.getLogger(__name__)
CHECK_ID_S = 10.0
"""How often an idle topic is checked for having been recreated."""


class SubscriptionConsumer:
    """Reads a topic and starts executions, also after the topic is recreated."""

    def __init__(
        self,
        ports: SubscriptionPorts,
        process: RoleProcess,
        state: SubscriptionState,
        subscription: Subscription,
        *,
        inline_bytes: int,
        stall_s: float = LIMIT_S,
    ) -> None:
        self._ports, self._process, self._state = ports, process, state
        self._subscription = subscription
        self._inline_bytes, self._stall_s = inline_bytes, stall_s
        assert subscription.kafka is not None
        self._topic = subscription.kafka.topic

    async def run(self) -> None:
        """Consume until cancelled; hold while the broker, a topic or a credential is missing."""
        pause_s, reported = FIRST_PAUSE_S, ""
        with self._process.holds.waiter() as waiter:
            while True:
                asked_at = asyncio.get_running_loop().time()
                try:
                    source = self._ports.open_source(self._state, self._subscription)
                    async with source as opened:
                        await self._consume(opened)
                    waiter.answered()
                    pause_s, reported = FIRST_PAUSE_S, ""
                except (Unavailable, Refused) as error:
                    # A refusal is a mistake in the subscription, not a reason to stop others.
                    if isinstance(error, Unavailable):
                        waiter.failed(error, asked_at)
                    if str(error) != reported:
                        _log.warning("subscription %s waits: %s", self._state.path, error)
                        reported = str(error)
                    await asyncio.sleep(pause_s)
                    pause_s = min(LONGEST_PAUSE_S, pause_s * 2)

    async def _consume(self, source: SubscriptionSource) -> None:
        """Consume until the topic is recreated."""
        subscribed = SubscribedTopic(
            state=self._state,
            subscription=self._subscription,
            topic_id=await fresh_topic_id(source.topic_ids, self._topic),
            reader=self._state.reader,
        )
        positions = _Positions(self._ports.ledger, subscribed)
        opening = source.feed(subscribed.topic_id, positions.seek)
        async with source.bodies() as bodies, opening as feed:
            positions.feed = feed
            name = f"subscription-{self._state.catalog_id}"
            consumption = TemporaryConsumption(
                self._process, feed, name=name, stall_s=self._stall_s
            )
            trigger = subscription_trigger(
                self._ports,
                subscribed,
                feed,
                MessageReader(self._subscription, bodies),
                inline_bytes=self._inline_bytes,
                admit=self._admission(feed, consumption.beat).admit,
            )
            topic = _CheckedTopic(source.topic_ids, self._topic, subscribed, trigger)
            async with in_background(topic.check_regularly()):
                await consumption.run(topic.handle, topic.set_aside, topic.is_recreated)

    def _admission(self, feed: SeekableFeed, beat: Callable[[], None]) -> Admission:
        def share() -> float:
            return len(feed.partitions) / max(1, feed.partition_count(self._topic)) or 1.0

        async def open_executions(limit: int) -> int:
            return await self._ports.ledger.open_executions(self._state.reader, limit)

        return Admission(
            self._subscription,
            self._ports.clock,
            open_executions=open_executions,
            share=share,
            beat=beat,
        )


class _CheckedTopic:
    """Handles the batches of a topic while it is the one that was opened."""

    def __init__(
        self, topic_ids: TopicIds, topic: str, subscribed: SubscribedTopic, trigger: Trigger
    ) -> None:
        self._topic_ids, self._topic = topic_ids, topic
        self._subscribed, self._trigger = subscribed, trigger
        self.is_recreated = asyncio.Event()

    async def handle(self, batch: Batch) -> None:
        # Asked after the batch was fetched: equal ids mean that none of it is of a topic with
        # the same name that was made in between.
        await self._check()
        if not self.is_recreated.is_set():
            await self._trigger.take(batch)

    async def set_aside(self, record: Record) -> None:
        await self._trigger.set_aside(record, "it ended the trigger process too often")

    async def check_regularly(self) -> None:
        while not self.is_recreated.is_set():
            await asyncio.sleep(CHECK_ID_S)
            with suppress(Unavailable):  # away, or deleted and not made again yet
                await self._check()

    async def _check(self) -> None:
        found = await fresh_topic_id(self._topic_ids, self._topic)
        if found != self._subscribed.topic_id:
            path = self._subscribed.state.path
            _log.warning("subscription %s: %s was recreated; reading anew", path, self._topic)
            self.is_recreated.set()


class _Positions:
    """Sets a feed to where the ledger ends: the group's offsets may be of an older topic."""

    def __init__(self, ledger: SubscriptionLedger, subscribed: SubscribedTopic) -> None:
        self._ledger, self._subscribed = ledger, subscribed
        self.feed: SeekableFeed | None = None

    async def seek(self, partitions: frozenset[TopicPartition]) -> None:
        assert self.feed is not None
        reader, topic_id = self._subscribed.reader, self._subscribed.topic_id
        for one in sorted(partitions):
            offset = await self._ledger.next_offset(reader, topic_id, one.partition)
            await self.feed.seek(one, offset)
