"""Process of the projector: opens its ports and attaches its loop to the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from streams.app import open_pool, open_registry, open_tiers
from streams.events.codec import Codec
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.port import Record
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.names import event_topic
from streams.kafka.transport.app import Application
from streams.log.postgres import PostgresEventStore
from streams.projector.loop import Projector
from streams.projector.outputs import Outputs
from streams.projector.postgres import PostgresProjections
from streams.projector.views import ROOTS
from streams.roles.application import open_process, role_application
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.settings import Settings

# Ten batches of fifty events cost far more than one of five hundred, and the API does not wait
# for the tables: it folds the log itself if they lag.
GATHER_S = 0.05
MAX_RECORDS = 2000
GROUP = "noetl.projector"


def projector_app(settings: Settings, data: Path) -> Application:
    """Return the projector's Faust application."""
    topics = [event_topic(root) for root in ROOTS]
    return role_application(settings, data, group=GROUP, topics=topics, max_records=MAX_RECORDS)


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Project until `stop` is set. It never appends, so it opens the log read-only."""
    bootstrap, runtime = settings.event_store.connection.url, settings.runtime
    dsn, limit_s = settings.event_store.canonical_connection.dsn("project"), runtime.call_limit_s
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=limit_s) as pool,
        open_tiers(settings, consumer="projector") as payloads,
        writing_tier_stats(payloads, role_folder(settings, data)),
        KafkaDeadLetters(bootstrap, limit_s=limit_s) as dead_letters,
    ):
        codec = await Codec.open(registry)
        process = open_process(app or projector_app(settings, data), settings, data)
        feed = TopicFeed(process.app, max_records=MAX_RECORDS, gather_s=GATHER_S)

        async def poison(record: Record, reason: str) -> None:
            await dead_letters.put(record, reason, kind="event")

        async def set_aside(record: Record) -> None:
            await poison(record, "it ended the projector too often")

        projector = Projector(
            feed,
            PostgresEventStore(None, pool, codec),
            PostgresProjections(pool, settings.payload_store.location),
            codec,
            shard_id=runtime.shard_id,
            topic_ids=await _topic_ids(process.app),
            set_aside=poison,
            outputs=Outputs(payloads),
        )
        process.attach(feed, projector.handle, set_aside=set_aside, stall_s=runtime.stall_seconds)
        await process.run(stop, ready)


async def _topic_ids(app: Application) -> dict[str, str]:
    topics = app.membership.topics
    return {topic: await app.topic_id(topic) for topic in topics}
