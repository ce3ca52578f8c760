"""The trigger loop of a subscription, or of a replay of it."""

from __future__ import annotations

from dataclasses import dataclass

from streams.catalog.subscription_state import SubscriptionState
from streams.kafka.feed.port import Feed
from streams.subscription.interpret import MessageReader
from streams.subscription.model import Subscription
from streams.trigger.entries import ReaderIdentity
from streams.trigger.loop import Admit, Trigger, TriggerPorts, admit_all
from streams.trigger.port import TopicIds
from streams.trigger.subscriptions.port import SubscriptionPorts
from streams.trigger.subscriptions.requests import SubscriptionRecords


class FixedTopicId:
    """The id that a topic had when its feed was opened; every batch is compared with it."""

    def __init__(self, topic_id: str) -> None:
        self._topic_id = topic_id

    async def topic_id(self, topic: str) -> str:
        """Return the id."""
        return self._topic_id

    def forget(self) -> None:
        """Do nothing: there is no cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedTopic:
    """A subscription and the topic that it reads, by its id."""

    state: SubscriptionState
    subscription: Subscription
    topic_id: str
    reader: str
    """Its name in the ledger: the subscription's, or that of a replay."""


def subscription_trigger(
    ports: SubscriptionPorts,
    subscribed: SubscribedTopic,
    feed: Feed,
    messages: MessageReader,
    *,
    inline_bytes: int,
    admit: Admit = admit_all,
) -> Trigger:
    """Return the loop that starts executions for the records of `feed`."""
    state, subscription = subscribed.state, subscribed.subscription
    return Trigger(
        TriggerPorts(
            feed=feed,
            ledger=ports.ledger,
            playbooks=ports.playbooks,
            topic_ids=FixedTopicId(subscribed.topic_id),
            payloads=ports.payloads,
            dead_letters=ports.dead_letters,
            interpreter=SubscriptionRecords(state, subscription, messages),
            take_ids=ports.take_ids,
            clock=ports.clock,
        ),
        ReaderIdentity(scope=state.scope, reader=subscribed.reader, subscription=state.path),
        inline_bytes=inline_bytes,
        max_batch=subscription.dispatch.batch_max,
        admit=admit,
    )


async def fresh_topic_id(topic_ids: TopicIds, topic: str) -> str:
    """Return the id that the broker has now.

    Raises:
        Unavailable: the broker cannot be reached, or the topic does not exist.
    """
    topic_ids.forget()
    return await topic_ids.topic_id(topic)
