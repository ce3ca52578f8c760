"""Process of the projector: opens its ports and attaches its loop to the shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from streams.app import open_pool, open_registry, open_tiers
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.agent import Shell
from streams.kafka.feed.batch_consumer import KafkaFeed
from streams.kafka.feed.port import Record
from streams.kafka.names import event_topic
from streams.log.postgres import PostgresEventStore
from streams.projector.loop import Projector
from streams.projector.outputs import Outputs
from streams.projector.postgres import PostgresProjections
from streams.projector.views import ROOTS
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.settings import Settings
from streams.trigger.kafka import KafkaTopicIds

# Ten batches of fifty events cost far more than one of five hundred, and the API does not wait
# for the tables: it folds the log itself if they lag.
GATHER_S = 0.05
GROUP = "noetl.projector"


async def run(
    settings: Settings, data: Path, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Project until `stop` is set. It never appends, so it opens the log read-only."""
    bootstrap, runtime = settings.event_store.connection.url, settings.runtime
    dsn, limit_s = settings.event_store.canonical_connection.dsn("project"), runtime.call_limit_s
    name, topics = runtime.shard_id, [event_topic(root) for root in ROOTS]
    topic_ids = KafkaTopicIds(bootstrap, SystemClock())
    async with (
        open_registry(settings) as registry,
        open_pool(dsn, limit_s=limit_s) as pool,
        open_tiers(settings, consumer="projector") as payloads,
        writing_tier_stats(payloads, role_folder(settings, data)),
        KafkaDeadLetters(bootstrap, limit_s=limit_s) as dead_letters,
        KafkaFeed(
            bootstrap, topics, group=GROUP, instance=name, gather_s=GATHER_S, max_records=2000
        ) as feed,
    ):
        codec = await Codec.open(registry)

        async def poison(record: Record, reason: str) -> None:
            await dead_letters.put(record, reason, kind="event")

        async def set_aside(record: Record) -> None:
            await poison(record, "it ended the projector too often")

        projector = Projector(
            feed,
            PostgresEventStore(None, pool, codec),
            PostgresProjections(pool, settings.payload_store.location),
            codec,
            shard_id=name,
            topic_ids={topic: await topic_ids.topic_id(topic) for topic in topics},
            set_aside=poison,
            outputs=Outputs(payloads),
        )
        shell = Shell("projector", role_folder(settings, data))
        shell.attach(feed, projector.handle, set_aside=set_aside, stall_s=runtime.stall_seconds)
        await shell.run(stop, ready)
