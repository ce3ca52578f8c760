"""How far a subscription has read: its group, its ledger, its records on the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from streams.catalog.subscription_state import ReplayRange, SubscriptionState
from streams.clock import Clock
from streams.errors import Refused
from streams.subscription.model import KafkaTopicSource
from streams.trigger.broker import TriggerTopic
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.lookup import LedgerReader
from streams.trigger.reconcile import ReconcileReport, reconcile


class BadReplay(Refused):
    """The range cannot be replayed."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a subscription's topic."""

    partition: int
    begin: int
    end: int
    committed: int | None
    next_offset: int | None
    """The offset after the last record in the ledger; None: none is."""

    @property
    def lag(self) -> int:
        """Offsets that the group has not passed."""
        return self.end - (self.begin if self.committed is None else self.committed)


class SubscribedTopicReader:
    """Reads the topic and group of a subscription without joining the group."""

    def __init__(self, brokers: str, kafka: KafkaTopicSource, clock: Clock) -> None:
        self._brokers, self._kafka, self._clock = brokers, kafka, clock

    async def topic_id(self) -> str:
        """Return the id of the topic.

        Raises:
            FeedUnavailable: the broker cannot be reached, or the topic does not exist.
        """
        return await KafkaTopicIds(self._brokers, self._clock).topic_id(self._kafka.topic)

    async def lags(self, state: SubscriptionState, ledger: LedgerReader) -> list[PartitionLag]:
        """Return the standing of every partition; raises like `topic_id`."""
        topic_id = await self.topic_id()
        topic = TriggerTopic(self._brokers, self._kafka.topic, group=self._kafka.group)
        try:
            committed = await asyncio.to_thread(topic.committed)
            limits = await asyncio.to_thread(topic.limits)
        finally:
            topic.close()
        return [
            PartitionLag(
                number,
                *within,
                committed.get(number),
                await ledger.next_offset(state.reader, topic_id, number),
            )
            for number, within in limits.items()
        ]

    async def reconcile(self, state: SubscriptionState, ledger: LedgerReader) -> ReconcileReport:
        """Compare the topic's records with the ledger; raises like `topic_id`."""
        topic_id = await self.topic_id()
        topic = TriggerTopic(self._brokers, self._kafka.topic, group=self._kafka.group)
        try:
            return await reconcile(topic, topic_id, ledger, reader=state.reader)
        finally:
            topic.close()

    async def replays(
        self,
        state: SubscriptionState,
        ledger: LedgerReader,
        from_offset: int,
        partitions: Sequence[int],
    ) -> list[ReplayRange]:
        """Return the replays from an offset to the last record in the ledger.

        Without `partitions`, of all that have such records.

        Raises:
            BadReplay: there is no such partition, or nothing to replay.
            FeedUnavailable: the broker cannot be reached, or the topic does not exist.
        """
        topic_id, found = await self.topic_id(), []
        lags = await self.lags(state, ledger)
        known = {one.partition for one in lags}
        if unknown := sorted(set(partitions) - known):
            raise BadReplay(f"{self._kafka.topic}: there is no partition {unknown[0]}")
        for one in lags:
            until = one.next_offset or 0
            if (not partitions or one.partition in partitions) and from_offset < until:
                found.append(
                    ReplayRange(
                        number=0,
                        topic=self._kafka.topic,
                        topic_id=topic_id,
                        partition=one.partition,
                        from_offset=from_offset,
                        until_offset=until,
                    )
                )
        if not found:
            raise BadReplay(
                f"{state.path}: no record at or after offset {from_offset} has started an "
                "execution yet; a replay repeats what was started"
            )
        return found
