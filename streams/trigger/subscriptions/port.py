"""Ports of the runtime of subscriptions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from streams.catalog.subscription_state import ReplayRange, SubscriptionState
from streams.clock import Clock
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.feed.consumption import WatchedFeed
from streams.kafka.feed.port import Notice, Record, TopicPartition
from streams.payload.port import PayloadStore
from streams.subscription.bodies import BodyReader
from streams.subscription.model import Subscription
from streams.trigger.port import PlaybookVersions, TopicIds, TriggerLedger


class SubscriptionLedger(TriggerLedger, Protocol):
    """The trigger ledger with what a subscription asks of it."""

    async def next_offset(self, reader: str, topic_id: str, partition: int) -> int | None:
        """Return the offset after the reader's last record of a partition; None without any.

        Raises:
            Unavailable: the database cannot be reached.
        """
        ...

    async def open_executions(self, reader: str, limit: int) -> int:
        """Return how many executions of the reader have not ended, at most `limit`.

        Raises:
            Unavailable: the database cannot be reached.
        """
        ...


class SeekableFeed(WatchedFeed, Protocol):
    """A feed whose position can be set when a partition is assigned."""

    async def seek(self, partition: TopicPartition, offset: int | None) -> None:
        """Continue a partition at an offset, None: at its first."""
        ...

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        ...

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has."""
        ...


class SubscriptionSource(Protocol):
    """Opens what one subscription reads: its topic, its schemas."""

    @property
    def topic_ids(self) -> TopicIds:
        """The ids of topics of its Kafka."""
        ...

    def feed(self, topic_id: str, on_assigned: Notice) -> AbstractAsyncContextManager[SeekableFeed]:
        """Open its topic, which has this id, as a member of its group."""
        ...

    def bodies(self) -> AbstractAsyncContextManager[BodyReader]:
        """Open the decoder of its messages."""
        ...

    def records(self, replay: ReplayRange, first: int) -> AsyncIterator[Sequence[Record]]:
        """Read the records of a replay from an offset, up to its end, in parts."""
        ...


OpenSource = Callable[
    [SubscriptionState, Subscription], AbstractAsyncContextManager[SubscriptionSource]
]
"""Finds the Kafka of a subscription; raises Unavailable while it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPorts:
    """Dependencies of all subscriptions of a process."""

    open_source: OpenSource
    ledger: SubscriptionLedger
    playbooks: PlaybookVersions
    payloads: PayloadStore
    dead_letters: DeadLetters
    take_ids: Callable[[int], Sequence[int]]
    clock: Clock
