"""A replay: a range of records starts executions once more, beside the live ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from streams.catalog.subscription_state import ReplayRange, SubscriptionState
from streams.kafka.feed.port import Record, TopicPartition
from streams.retry import retry
from streams.subscription.interpret import MessageReader
from streams.subscription.model import Subscription
from streams.trigger.subscriptions.port import SubscriptionPorts, SubscriptionSource
from streams.trigger.subscriptions.starting import (
    SubscribedTopic,
    fresh_topic_id,
    subscription_trigger,
)

_log = logging.getLogger(__name__)


class _NoFeed:
    """A replay's progress is in the ledger; there is nothing to acknowledge."""

    async def next_batch(self) -> Mapping[TopicPartition, list[Record]]:
        return {}

    def acknowledge(self, records: Iterable[Record]) -> None:
        return


class ReplayRunner:
    """Runs replays to their ends; after a crash they go on where the ledger ends."""

    def __init__(self, ports: SubscriptionPorts, *, inline_bytes: int) -> None:
        self._ports, self._inline_bytes = ports, inline_bytes

    async def run(
        self, state: SubscriptionState, subscription: Subscription, replay: ReplayRange
    ) -> None:
        """Run a replay to its end, holding while a dependency is away."""

        async def attempt() -> None:
            async with self._ports.open_source(state, subscription) as source:
                await self._attempt(source, state, subscription, replay)

        await retry(attempt)

    async def _attempt(
        self,
        source: SubscriptionSource,
        state: SubscriptionState,
        subscription: Subscription,
        replay: ReplayRange,
    ) -> None:
        topic_ids, partition = source.topic_ids, replay.partition
        subscribed = SubscribedTopic(
            state=state,
            subscription=subscription,
            topic_id=replay.topic_id,
            reader=state.replay_reader(replay),
        )
        reached = await self._ports.ledger.next_offset(
            subscribed.reader, replay.topic_id, partition
        )
        first = max(replay.from_offset, reached or 0)
        async with source.bodies() as bodies:
            trigger = subscription_trigger(
                self._ports,
                subscribed,
                _NoFeed(),
                MessageReader(subscription, bodies),
                inline_bytes=self._inline_bytes,
            )
            async for records in source.records(replay, first):
                if await fresh_topic_id(topic_ids, replay.topic) != replay.topic_id:
                    what = "replay %d of %s ends: topic %s was recreated"
                    _log.warning(what, replay.number, state.path, replay.topic)
                    return
                await trigger.take({TopicPartition(replay.topic, partition): records})
