"""Process of the projector: opens its ports and attaches its loop to the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import asyncpg

from streams.app import open_pool, open_registry, open_routes, open_tiers
from streams.catalog.texts import RegisteredTexts
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.agent import FaustProcess
from streams.kafka.feed.port import TopicPartition
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.names import event_topic
from streams.kafka.partitions import partition_of_id
from streams.kafka.transport.app import Application
from streams.kafka.transport.health import serve_rows
from streams.log.port import EventStore
from streams.log.postgres import PostgresEventStore
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import PROJECTOR
from streams.payload.tiers.tiered_store import TieredPayloads
from streams.projector.business.declared import Declared
from streams.projector.business.fold import BusinessFolds
from streams.projector.business.plugins import installed
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.lag import ProjectionLag
from streams.projector.loop import EXECUTION_TOPIC, Projector
from streams.projector.outputs import Outputs
from streams.projector.postgres import PostgresProjections
from streams.projector.served import TABLES, ServedExecutions, TableFill
from streams.projector.stores.routed import RoutedProjections, RoutedStates, Routes
from streams.projector.views import ROOTS
from streams.retry import retry
from streams.roles.application import create_changelogs, open_process, role_application
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.settings import Settings

# Ten batches of fifty events cost far more than one of five hundred, and the API does not wait
# for the tables: it folds the log itself if they lag.
GATHER_S = 0.1
MAX_RECORDS = 2000
GROUP = "noetl.projector"
_FATAL = "it ended the projector too often"


def projector_app(settings: Settings, data: Path) -> Application:
    """Return the projector's Faust application."""
    topics = [event_topic(root) for root in ROOTS]
    return role_application(
        settings, data, group=GROUP, topics=topics, max_records=MAX_RECORDS, tables=TABLES
    )


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Project until `stop` is set. It never appends, so it opens the log read-only."""
    bootstrap, runtime = settings.event_store.connection.url, settings.runtime
    limit_s, stall_s = runtime.call_limit_s, runtime.stall_seconds
    metrics = RoleMetrics(PROJECTOR, runtime.shard_id)
    async with (
        open_registry(settings) as registry,
        _open_database(settings, metrics) as pool,
        open_routes(settings) as routes,
        open_tiers(settings, consumer="projector", metrics=metrics) as payloads,
        writing_tier_stats(payloads, role_folder(settings, data)),
        KafkaDeadLetters(bootstrap, limit_s=limit_s, metrics=metrics) as dead_letters,
    ):
        codec = await Codec.open(registry)
        process = open_process(app or projector_app(settings, data), settings, data, metrics)
        await create_changelogs(process.app, limit_s=limit_s)
        feed = _Feed(process.app)
        log = PostgresEventStore(None, pool, codec)
        store, lag = _measured(settings, pool, feed, metrics)
        projector = Projector(
            feed,
            log,
            RoutedProjections(store, routes),
            codec,
            shard_id=runtime.shard_id,
            topic_ids=await _topic_ids(process.app),
            set_aside=partial(dead_letters.put, kind="event"),
            business=_business(log, payloads, pool, routes),
            served=_attach_table(process, feed, log),
            snapshot_interval=settings.event_store.replay.snapshot_interval_events,
        )
        set_aside = partial(dead_letters.put, reason=_FATAL, kind="event")
        process.attach(feed, lag.watched(projector.handle), set_aside=set_aside, stall_s=stall_s)
        await process.run(stop, ready)


def _open_database(
    settings: Settings, metrics: RoleMetrics
) -> AbstractAsyncContextManager[asyncpg.Pool]:
    dsn = settings.event_store.canonical_connection.dsn("project")
    return open_pool(dsn, limit_s=settings.runtime.call_limit_s, name="project", metrics=metrics)


def _measured(
    settings: Settings, pool: asyncpg.Pool, feed: TopicFeed, metrics: RoleMetrics
) -> tuple[PostgresProjections, ProjectionLag]:
    """Return the writer of the projections, and the lag; both are among the metrics."""
    store = PostgresProjections(pool, settings.payload_store.location)
    lag = ProjectionLag(settings.runtime.shard_id, SystemClock(), lambda: _behind(feed))
    metrics.add(store.samples)
    metrics.add(lag.samples)
    return store, lag


def _behind(feed: TopicFeed) -> int:
    """Return the lag of the assigned partitions, in records; 0 while there are none."""
    return feed.standing().behind if feed.partitions else 0


def _business(
    log: EventStore, payloads: TieredPayloads, pool: asyncpg.Pool, routes: Routes
) -> BusinessFolds:
    stored = PostgresBusiness(pool)
    declared = Declared(RegisteredTexts(log, payloads), installed(), stored)
    return BusinessFolds(log, Outputs(payloads), declared, RoutedStates(stored, routes))


class _Feed(TopicFeed):
    """Events to project; assignments are reported to the fill of the table."""

    fill: TableFill

    def __init__(self, app: Application) -> None:
        super().__init__(app, on_assigned=self._check, max_records=MAX_RECORDS, gather_s=GATHER_S)

    def partition_of(self, execution_id: int) -> int:
        """Return the partition of an execution's events."""
        return partition_of_id(execution_id, self.partition_count(EXECUTION_TOPIC))

    async def _check(self, _: frozenset[TopicPartition]) -> None:
        self.fill.check()


def _attach_table(process: FaustProcess, feed: _Feed, log: EventStore) -> ServedExecutions:
    """Fill and serve the table of executions."""
    served = ServedExecutions(process.app.state_tables, feed.partition_of)
    feed.fill = TableFill(served, log)
    process.add_work(partial(retry, feed.fill.run, holds=process.holds))
    serve_rows(process.app, "executions", served.get)
    return served


async def _topic_ids(app: Application) -> dict[str, str]:
    return {topic: await app.topic_ids.topic_id(topic) for topic in app.membership.topics}
