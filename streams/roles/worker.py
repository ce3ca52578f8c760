"""Process of a worker: opens its ports and attaches its loop to the agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import orjson

from streams.app import (
    Log,
    catalog_of,
    event_store_of,
    open_copies,
    open_log,
    open_tiers,
    worker_token_of,
)
from streams.clock import SystemClock
from streams.data_folder import layout_of
from streams.holds import Holds
from streams.kafka.dead_letters import DeadLetters, KafkaDeadLetters
from streams.kafka.feed.port import Record
from streams.kafka.feed.topics import TopicFeed
from streams.kafka.names import work_topic
from streams.kafka.transport.app import Application
from streams.kafka.work.queue import create_topic
from streams.log.rate_leases import PostgresRateLeases
from streams.log.worker_incarnations import incarnation
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import WORKER
from streams.payload.port import PayloadStore
from streams.playbook.result_policy import INLINE_BYTES
from streams.results.lookup import Results
from streams.roles.application import open_process, role_application
from streams.roles.start import role_folder
from streams.roles.tier_stats import writing_tier_stats
from streams.settings import Settings
from streams.worker.attempt.children import Children
from streams.worker.attempt.input import Documents
from streams.worker.attempt.secret_api import ApiSecrets
from streams.worker.attempt.secrets import LeasedCredentials
from streams.worker.await_executions import EndedExecutions
from streams.worker.counts import WorkCounts
from streams.worker.loop import Worker
from streams.worker.options import Options, WorkerPorts
from streams.worker.pace.rates import RateLimits
from streams.worker.process import attach_worker
from streams.worker.rows.kafka_ranges import KafkaPartitions
from streams.worker.tools.container.login import KubernetesConfig
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.kv.postgres import PostgresKv
from streams.worker.tools.registry import ToolEnvironment, open_tools


def worker_app(settings: Settings, data: Path) -> Application:
    """Return the Faust application of a worker: it reads the work of its pool."""
    pool = settings.runtime.pool
    return role_application(settings, data, group=f"noetl.worker.{pool}", topics=[work_topic(pool)])


async def run(
    settings: Settings,
    data: Path,
    stop: asyncio.Event,
    ready: Callable[[], None],
    app: Application | None = None,
) -> None:
    """Work until `stop` is set; then finish or hand back running items."""
    bootstrap = settings.event_store.connection.url
    # A new name in each incarnation: a claim ends with the process that made it.
    name = f"{settings.runtime.shard_id}/{uuid4().hex[:8]}"
    limit_s = settings.runtime.call_limit_s
    metrics = RoleMetrics(WORKER, settings.runtime.shard_id)
    process = open_process(app or worker_app(settings, data), settings, data, metrics)
    await create_topic(bootstrap, settings.runtime.pool, limit_s=limit_s)
    async with (
        _open_credentials(settings, data) as credentials,
        open_log(settings, role="worker", lanes=1, metrics=metrics) as log,
        incarnation(log.pool, name) as incarnations,
        KafkaDeadLetters(bootstrap, limit_s=limit_s, metrics=metrics) as dead_letters,
        _open_ports(
            settings, data, log, credentials, dead_letters, process.holds, metrics
        ) as ports,
    ):
        feed = TopicFeed(process.app)
        worker = Worker(feed, ports, _options(settings, name))

        async def set_aside(record: Record) -> None:
            await dead_letters.put(record, "ended the worker too often", kind="worker")

        attach_worker(
            process,
            feed,
            worker,
            incarnations=incarnations,
            name=name,
            set_aside=set_aside,
            stall_s=settings.runtime.stall_seconds,
        )
        await process.run(stop, ready)


@asynccontextmanager
async def _open_ports(
    settings: Settings,
    data: Path,
    log: Log,
    credentials: LeasedCredentials,
    dead_letters: DeadLetters,
    holds: Holds,
    metrics: RoleMetrics,
) -> AsyncIterator[WorkerPorts]:
    """Open the payload tiers, the copies of results and the tools of a worker."""
    folder, counts = role_folder(settings, data), WorkCounts()
    metrics.add(counts.samples)
    async with (
        open_tiers(settings, consumer="worker", metrics=metrics) as payloads,
        open_copies(settings, log.pool, folder) as copies,
        writing_tier_stats(payloads, folder, copies),
        aclosing(RateLimits(PostgresRateLeases(log.pool), SystemClock(), holds)) as rates,
        open_tools(_tool_environment(settings, data, log, payloads, credentials, holds)) as tools,
    ):
        metrics.add(copies.samples)
        yield WorkerPorts(
            log=log.store,
            payloads=payloads,
            documents=Documents(payloads, copies=copies),
            copies=copies,
            playbooks=catalog_of(log, payloads),
            tools=tools,
            credentials=credentials,
            clock=SystemClock(),
            dead_letters=dead_letters,
            holds=holds,
            counts=counts,
            rates=rates,
            partitions=KafkaPartitions(settings.event_store.connection.url, SystemClock()),
        )


@asynccontextmanager
async def _open_credentials(settings: Settings, data: Path) -> AsyncIterator[LeasedCredentials]:
    """Open the lookup of credentials: the settings' own first, then the API's."""
    own = ConfiguredCredentials(_secrets(settings), os.environ)
    api = ApiSecrets(lambda: _api(settings, data), worker_token_of(settings))
    async with aclosing(api):
        yield LeasedCredentials(own, api, SystemClock())


def _tool_environment(
    settings: Settings,
    data: Path,
    log: Log,
    payloads: PayloadStore,
    credentials: LeasedCredentials,
    holds: Holds,
) -> ToolEnvironment:
    return ToolEnvironment(
        credentials=credentials,
        payloads=payloads,
        deployment=settings.runtime.cluster_id,
        bootstrap=settings.event_store.connection.url,
        children=Children(
            log.store,
            catalog_of(log, payloads),
            payloads,
            SystemClock(),
            inline_bytes=settings.payload_store.threshold_bytes,
        ),
        ended_executions=EndedExecutions(log.store, holds),
        results=Results(event_store_of(log.store, log.pool, log.codec, settings), SystemClock()),
        sink_folder=Path(settings.sinks.folder or data / "sinks"),
        scratch_folder=layout_of(data).scratch,
        kv=PostgresKv(log.pool),
        shell_allowed=settings.tools.shell,
        kubernetes=_kubernetes(settings),
    )


def _kubernetes(settings: Settings) -> KubernetesConfig:
    given = settings.tools.kubernetes
    return KubernetesConfig(
        kubeconfig=None if given.kubeconfig is None else Path(given.kubeconfig).expanduser(),
        context=given.context,
        namespace=given.namespace,
    )


def _options(settings: Settings, name: str) -> Options:
    return Options(
        name=name,
        deployment=settings.runtime.cluster_id,
        inline_bytes=min(settings.payload_store.threshold_bytes, INLINE_BYTES),
        large_store=settings.payload_store.kind,
        slots=settings.runtime.scheduler.max_inflight_frames_per_worker,
        row_concurrency=settings.frames.row_concurrency,
        lease_s=settings.frames.lease_seconds,
        beat_s=float(settings.frames.heartbeat_seconds),
    )


def _api(settings: Settings, data: Path) -> str | None:
    """Return the API's address, from the settings or from the file of a local API."""
    if settings.api.url is not None:
        return settings.api.url.rstrip("/")
    for found in sorted(layout_of(data).roles.glob("api*.json")):
        with suppress(OSError, ValueError, KeyError):  # it may just be ending or writing
            url: str = orjson.loads(found.read_bytes())["url"]
            return url
    return None


def _secrets(settings: Settings) -> dict[str, dict[str, str]]:
    return {
        name: {field: secret.get_secret_value() for field, secret in fields.items()}
        for name, fields in settings.credentials.items()
    }
