"""Subscriptions of the trigger's process: adapters, consumers, replays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streams.app import Log, subscription_secrets_of, subscriptions_of, trigger_ledger_of
from streams.catalog.subscription_state import SubscriptionState
from streams.clock import SystemClock
from streams.credential.subscribed import SubscriptionSecrets
from streams.kafka.feed.process import RoleProcess
from streams.schema.registry import SchemaRegistry
from streams.settings import Settings
from streams.subscription.model import Subscription
from streams.trigger.loop import TriggerPorts
from streams.trigger.subscriptions.brokers import brokers_of
from streams.trigger.subscriptions.consumer import SubscriptionConsumer
from streams.trigger.subscriptions.kafka import KafkaSubscriptionSource
from streams.trigger.subscriptions.port import OpenSource, SubscriptionPorts, SubscriptionSource
from streams.trigger.subscriptions.replays import ReplayRunner
from streams.trigger.subscriptions.supervisor import SubscriptionSupervisor


def source_opener(
    settings: Settings, registry: SchemaRegistry, secrets: SubscriptionSecrets
) -> OpenSource:
    """Return what opens the topics of subscriptions; without brokers of their own, ours."""

    @asynccontextmanager
    async def open_source(
        state: SubscriptionState, subscription: Subscription
    ) -> AsyncIterator[SubscriptionSource]:
        ours = settings.event_store.connection.url
        brokers = await brokers_of(state, subscription, ours, secrets)
        yield KafkaSubscriptionSource(
            brokers,
            subscription,
            instance=settings.runtime.shard_id,
            registry=registry,
            clock=SystemClock(),
        )

    return open_source


def open_supervisor(
    settings: Settings,
    process: RoleProcess,
    log: Log,
    registry: SchemaRegistry,
    trigger: TriggerPorts,
) -> SubscriptionSupervisor:
    """Return the supervisor of all subscriptions, with the ports of the trigger's process."""
    inline_bytes = settings.payload_store.threshold_bytes
    ports = SubscriptionPorts(
        open_source=source_opener(settings, registry, subscription_secrets_of(log, settings)),
        ledger=trigger_ledger_of(log, settings, "triggers"),
        playbooks=trigger.playbooks,
        payloads=trigger.payloads,
        dead_letters=trigger.dead_letters,
        take_ids=trigger.take_ids,
        clock=trigger.clock,
    )
    replays = ReplayRunner(ports, inline_bytes=inline_bytes)

    async def consume(state: SubscriptionState, subscription: Subscription) -> None:
        consumer = SubscriptionConsumer(
            ports,
            process,
            state,
            subscription,
            inline_bytes=inline_bytes,
            stall_s=settings.runtime.stall_seconds,
        )
        await consumer.run()

    return SubscriptionSupervisor(subscriptions_of(log, trigger.payloads), consume, replays.run)
