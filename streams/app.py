"""The only place where adapters are chosen."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg

from streams.catalog.catalog import Catalog
from streams.catalog.postgres import PostgresCatalogEvents
from streams.clock import SystemClock
from streams.envelope.codec import Codec
from streams.envelope.locator import Locator
from streams.envelope.registry import FileRegistry, SchemaRegistry
from streams.ids import Snowflakes
from streams.local.settings import stack_settings
from streams.local.state import find_stack
from streams.log.appender import LANES, Appender
from streams.log.errors import LogUnavailable
from streams.log.lane import CONNECTION_LOST
from streams.log.postgres import PostgresEventStore
from streams.log.worker_ids import hold_worker_id
from streams.mirror.registry_db import DatabaseRegistry
from streams.mirror.registry_external import ExternalRegistry, RegistryClient
from streams.payload.buckets import azure_container, gcs_bucket, s3_bucket
from streams.payload.cloud import CloudObjects
from streams.payload.keys import found, given
from streams.payload.local import LocalObjects
from streams.payload.objects import Shelves
from streams.payload.port import PayloadStore
from streams.payload.s3 import S3Objects
from streams.payload.store import ContentStore
from streams.resources import folder
from streams.settings import Loaded, Settings, load

ROLES: Mapping[str, str] = {
    "planner": "streams.roles.planner:run",
    "worker": "streams.roles.worker:run",
    "projector": "streams.roles.projector:run",
    "trigger": "streams.roles.trigger:run",
    "api": "streams.roles.api:run",
}
"""Our long-running processes: what `streams run` and `streams up` start for each name."""


def load_settings(config: Path | None, data: Path | None) -> Loaded:
    """Load the settings in effect here, with a running embedded stack under the file.

    `config` is the configuration file and `data` the stack's folder; None means the
    usual one of each.

    Raises:
        BadSettings: the configuration cannot be used.
    """
    stack = find_stack(data)
    return load(config, env=os.environ, stack=stack_settings(stack) if stack else None)


def producer(settings: Settings, role: str) -> str:
    """Return the locator that events of this process carry, for example as a worker."""
    runtime = settings.runtime
    place = Locator(
        runtime.tenant_id,
        runtime.organization_id,
        cluster=runtime.cluster_id,
        region=runtime.region,
        zone=runtime.zone,
        node=runtime.node_id,
        process=str(os.getpid()),
    )
    return str(place.thing(role, runtime.shard_id))


@asynccontextmanager
async def open_registry(settings: Settings) -> AsyncIterator[SchemaRegistry]:
    """Open the registry that the settings name."""
    chosen = settings.serialization.schema_registry
    if chosen.backend == "db":
        async with open_pool(settings.event_store.canonical_connection.dsn("append")) as pool:
            yield DatabaseRegistry(pool)
    elif chosen.backend == "external":
        assert chosen.url is not None
        async with aiohttp.ClientSession() as session:
            yield ExternalRegistry(RegistryClient(chosen.url, session))
    else:
        yield FileRegistry(Path(chosen.path) if chosen.path else folder("avro_schemas"))


@dataclass(frozen=True, slots=True)
class Log:
    """An open log: the store, the ids to use with it, and the codec of its envelopes."""

    store: PostgresEventStore
    ids: Snowflakes
    codec: Codec
    pool: asyncpg.Pool


@asynccontextmanager
async def open_log(settings: Settings, *, role: str, lanes: int = LANES) -> AsyncIterator[Log]:
    """Open the log for appending and reading, as a process of this role.

    Raises:
        LogUnavailable: Postgres cannot be reached.
        ClockSkew: this machine's clock is too far off.
    """
    database = settings.event_store.canonical_connection
    async with open_registry(settings) as registry, open_pool(database.dsn("append")) as pool:
        codec = await Codec.open(registry)
        holder = f"{settings.runtime.node_id}/{os.getpid()}/{uuid4().hex}"
        async with hold_worker_id(pool, SystemClock(), holder) as lease:
            ids = Snowflakes(SystemClock(), lease)
            async with Appender(
                database.dsn("append"),
                codec=codec,
                take_ids=ids.take,
                producer=producer(settings, role),
                lanes=lanes,
            ) as appender:
                yield Log(PostgresEventStore(appender, pool, codec), ids, codec, pool)


def catalog_of(log: Log, payloads: PayloadStore | None = None) -> Catalog:
    """Return the catalog in a log; playbooks too long for an event need the payload store."""
    return Catalog(
        log.store,
        PostgresCatalogEvents(log.pool, log.codec),
        next_id=log.ids.next,
        clock=SystemClock(),
        payloads=payloads,
    )


@asynccontextmanager
async def open_pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    """Open a small pool of connections.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    try:
        # Two: every role keeps one, and all of them together must fit a small server.
        pool = await asyncpg.create_pool(dsn, min_size=1, max_size=2, timeout=10)
    except (*CONNECTION_LOST, asyncpg.PostgresError, TimeoutError) as error:
        why = f"Postgres does not let us in: {error or type(error).__name__}"
        raise LogUnavailable(f"{why}; is it up (`streams status`)?") from error
    async with pool:
        yield pool


@asynccontextmanager
async def open_payloads(settings: Settings) -> AsyncIterator[PayloadStore]:
    """Open the payload store that the settings name.

    Raises:
        NoSuchBackend: the settings do not say enough to open it.
    """
    async with open_shelves(settings) as shelves:
        yield ContentStore(shelves, compression=settings.serialization.compression)


@asynccontextmanager
async def open_shelves(settings: Settings) -> AsyncIterator[Shelves]:
    """Open the place where payload objects lie.

    Raises:
        NoSuchBackend: the settings do not say enough to open it.
    """
    chosen, place = settings.payload_store, settings.payload_store.connection
    if chosen.backend == "local":
        assert place.path is not None
        yield LocalObjects(Path(place.path))
    elif chosen.backend == "gcs":
        yield CloudObjects(gcs_bucket(place))
    elif chosen.backend == "azure-blob":
        yield CloudObjects(azure_container(place))
    else:
        timeout = aiohttp.ClientTimeout(total=60, connect=10)
        connector = aiohttp.TCPConnector(limit=16)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield _s3_objects(session, settings)


def _s3_objects(session: aiohttp.ClientSession, settings: Settings) -> S3Objects:
    chosen, place = settings.payload_store, settings.payload_store.connection
    aws = f"https://{place.bucket}.s3.{place.region}.amazonaws.com"
    keys = found()
    if place.access_key is not None and place.secret_key is not None:
        keys = given(place.access_key.get_secret_value(), place.secret_key.get_secret_value())
    return S3Objects(
        session,
        base_url=f"{place.endpoint.rstrip('/')}/{place.bucket}" if place.endpoint else aws,
        region=place.region,
        keys=keys,
        now=SystemClock().now,
        large=CloudObjects(s3_bucket(place, encrypt=chosen.encryption_at_rest)),
        encrypt=chosen.encryption_at_rest,
    )
