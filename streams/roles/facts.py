"""Process of the facts role: publishes facts for analysts from the mirrored events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from streams.app import open_pool, open_registry
from streams.events.codec import Codec
from streams.facts.codec import FactCodec
from streams.facts.kafka import KafkaFacts
from streams.facts.loop import FactsPublisher
from streams.facts.views import ROOTS
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.port import TopicPartition
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.names import event_topic
from streams.kafka.transport.app import Application
from streams.log.postgres import PostgresEventStore
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import FACTS
from streams.roles.application import open_process, role_application
from streams.settings import Settings

# Each batch is a transaction for each partition: seconds matter less than their number.
GATHER_S = 0.25
MAX_RECORDS = 2000
GROUP = "noetl.facts"
_FATAL = "it ended the facts role too often"


def facts_app(settings: Settings, data: Path) -> Application:
    """Return the role's Faust application."""
    topics = [event_topic(root) for root in ROOTS]
    return role_application(settings, data, group=GROUP, topics=topics, max_records=MAX_RECORDS)


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Publish until `stop` is set. It never appends, so it opens the log read-only."""
    bootstrap, runtime = settings.event_store.connection.url, settings.runtime
    metrics = RoleMetrics(FACTS, runtime.shard_id)
    dsn, limit_s = settings.event_store.canonical_connection.dsn("read"), runtime.call_limit_s
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=limit_s, metrics=metrics) as pool,
        KafkaDeadLetters(bootstrap, limit_s=limit_s, metrics=metrics) as dead_letters,
        KafkaFacts(bootstrap, limit_s=limit_s) as writer,
    ):
        codec = await Codec.open(registry)
        process = open_process(app or facts_app(settings, data), settings, data, metrics)
        feed = _feed(process.app, writer)
        publisher = FactsPublisher(
            feed,
            PostgresEventStore(None, pool, codec),
            writer,
            codec,
            await FactCodec.open(registry),
            set_aside=partial(dead_letters.put, kind="event"),
        )
        set_aside = partial(dead_letters.put, reason=_FATAL, kind="event")
        process.attach(feed, publisher.handle, set_aside=set_aside, stall_s=runtime.stall_seconds)
        await process.run(stop, ready)


def _feed(app: Application, writer: KafkaFacts) -> TopicFeed:
    """Return the events to publish facts of; the writer has a producer for each partition."""

    async def keep(_: frozenset[TopicPartition]) -> None:
        await writer.keep(feed.partitions)

    feed = TopicFeed(
        app, on_assigned=keep, on_revoked=keep, max_records=MAX_RECORDS, gather_s=GATHER_S
    )
    return feed
