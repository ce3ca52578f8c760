"""Process of the trigger: opens its ports and attaches its loop to the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from streams.app import (
    catalog_of,
    open_log,
    open_payloads,
    open_registry,
    trigger_ledger_of,
)
from streams.clock import SystemClock
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.port import Record
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.transport.app import Application
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import TRIGGER
from streams.payload.port import Scope
from streams.roles.application import open_process, role_application
from streams.roles.subscriptions import open_supervisor
from streams.settings import Settings
from streams.trigger.avro import TriggerReader
from streams.trigger.catalog import CatalogPlaybooks
from streams.trigger.entries import ReaderIdentity
from streams.trigger.interpreter import TriggerRecords
from streams.trigger.kafka import GROUP, KafkaTopicIds
from streams.trigger.loop import Trigger, TriggerPorts
from streams.trigger.publish import TOPIC


def trigger_app(settings: Settings, data: Path) -> Application:
    """Return the trigger's Faust application."""
    return role_application(settings, data, group=GROUP, topics=[TOPIC])


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Start executions until `stop` is set."""
    bootstrap, runtime, clock = settings.event_store.connection.url, settings.runtime, SystemClock()
    scope = Scope(runtime.tenant_id, runtime.organization_id)
    metrics = RoleMetrics(TRIGGER, runtime.shard_id)
    async with (
        open_log(settings, role="triggers", lanes=1, metrics=metrics) as log,
        open_payloads(settings, metrics) as payloads,
        open_registry(settings) as registry,
        KafkaDeadLetters(bootstrap, limit_s=runtime.call_limit_s, metrics=metrics) as dead_letters,
    ):
        process = open_process(app or trigger_app(settings, data), settings, data, metrics)
        feed = TopicFeed(process.app)
        ports = TriggerPorts(
            feed=feed,
            ledger=trigger_ledger_of(log, settings, "triggers"),
            playbooks=CatalogPlaybooks(catalog_of(log, payloads)),
            topic_ids=KafkaTopicIds(bootstrap, clock),
            payloads=payloads,
            dead_letters=dead_letters,
            interpreter=TriggerRecords(TriggerReader(registry), scope),
            take_ids=log.ids.take,
            clock=clock,
        )
        inline_bytes = settings.payload_store.threshold_bytes
        trigger = Trigger(ports, ReaderIdentity(scope=scope), inline_bytes=inline_bytes)

        async def set_aside(record: Record) -> None:
            await trigger.set_aside(record, "it ended the trigger process too often")

        process.attach(feed, trigger.take, set_aside=set_aside, stall_s=runtime.stall_seconds)
        supervisor = open_supervisor(settings, process, log, registry, ports)
        process.add_work(supervisor.run)
        await process.run(stop, ready)
