"""The only place where adapters are chosen."""

from __future__ import annotations

import asyncio
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
from streams.collector.port import Ports
from streams.collector.postgres import open_ledger
from streams.credential.environment import EnvironmentProvider
from streams.credential.errors import BadCredential
from streams.credential.file import FileProvider
from streams.credential.keys import Keys, keys_from
from streams.credential.port import Provider
from streams.credential.postgres import PostgresCredentials
from streams.events.codec import Codec
from streams.events.locator import Locator
from streams.ids import Snowflakes
from streams.log.appender import LANES, Appender
from streams.log.errors import LogUnavailable
from streams.log.postgres import PostgresEventStore
from streams.log.worker_ids import hold_worker_id
from streams.payload.objects.open import open_payloads, open_shelves
from streams.payload.port import PayloadStore
from streams.payload.shm.node import Terms, open_shared_memory
from streams.payload.shm.space import space_in
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk import open_disk_cache
from streams.payload.tiers.process_cache import ByteLru
from streams.payload.tiers.tiered_store import Caches, TieredPayloads
from streams.postgres import connecting
from streams.resources import folder
from streams.results.copies.disk import DiskTier
from streams.results.copies.kafka import KafkaTier
from streams.results.copies.memory import MemoryTier
from streams.results.copies.port import Copies
from streams.results.copies.postgres import PostgresTier
from streams.schema.registry import FileRegistry, SchemaRegistry
from streams.schema.registry_external import ExternalRegistry, RegistryClient
from streams.schema.registry_postgres import DatabaseRegistry
from streams.settings import Settings

__all__ = [
    "NODE_ROLES",
    "ROLES",
    "Log",
    "catalog_of",
    "credentials_of",
    "keys_of",
    "open_collector",
    "open_copies",
    "open_log",
    "open_payloads",
    "open_pool",
    "open_registry",
    "open_shelves",
    "open_tiers",
    "producer",
    "providers_of",
    "sharing_terms",
    "worker_token_of",
]

ROLES: Mapping[str, str] = {
    "planner": "streams.roles.planner:run",
    "worker": "streams.roles.worker:run",
    "projector": "streams.roles.projector:run",
    "trigger": "streams.roles.trigger:run",
    "api": "streams.roles.api:run",
    "collector": "streams.roles.collector:run",
}
"""Our long-running processes: what `streams run` and `streams up` start for each name."""
NODE_ROLES: Mapping[str, str] = {"shm-broker": "streams.roles.shm_broker:run"}
"""What a node may have besides; `streams run` starts it where it is wanted."""


MB = 1 << 20


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
    sealer: str
    """What seals its events: native or python."""


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
                store = PostgresEventStore(appender, pool, codec)
                yield Log(store, ids, codec, pool, appender.sealer)


def catalog_of(log: Log, payloads: PayloadStore | None = None) -> Catalog:
    """Return the catalog in a log; playbooks too long for an event need the payload store."""
    return Catalog(
        log.store,
        PostgresCatalogEvents(log.pool, log.codec),
        next_id=log.ids.next,
        clock=SystemClock(),
        payloads=payloads,
    )


def credentials_of(log: Log, settings: Settings) -> PostgresCredentials:
    """Return the stored credentials beside a log."""
    return PostgresCredentials(
        log.pool,
        codec=log.codec,
        take_ids=log.ids.take,
        producer=producer(settings, "api"),
        now=SystemClock().now,
    )


def keys_of(settings: Settings) -> Keys:
    """Return how to read the keys that seal credentials."""
    chosen = settings.credential_store
    return keys_from(chosen.key.get_secret_value() if chosen.key else None, chosen.key_file)


def providers_of(settings: Settings) -> dict[str, Provider]:
    """Return the outside keepers of secrets that the settings name, by the prefix of names."""
    chosen, found = settings.credential_store.providers, dict[str, Provider]()
    if chosen.environment:
        found["env"] = EnvironmentProvider(os.environ)
    if chosen.file is not None:
        found["file"] = FileProvider(Path(chosen.file.folder))
    if (aws := chosen.aws) is not None:
        # Its client takes a quarter of a second to import, and few deployments need it.
        from streams.credential.aws import AwsProvider

        found["aws"] = AwsProvider(
            region=aws.region,
            endpoint=aws.endpoint,
            prefix=aws.prefix,
            timeout_s=float(aws.timeout_seconds),
        )
    return found


def worker_token_of(settings: Settings) -> str | None:
    """Return what workers show the API to be given secrets, or None where nothing is set.

    Raises:
        BadCredential: its file cannot be read.
    """
    chosen = settings.credential_store
    if chosen.worker_token is not None:
        return chosen.worker_token.get_secret_value() or None
    if chosen.worker_token_file is None:
        return None
    try:
        return Path(chosen.worker_token_file).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        where = f"credential_store.worker_token_file: {chosen.worker_token_file}"
        raise BadCredential(f"{where} cannot be read ({why}); put the token there") from None


@asynccontextmanager
async def open_pool(dsn: str) -> AsyncIterator[asyncpg.Pool]:
    """Open a small pool of connections.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    with connecting(LogUnavailable):
        # Two: every role keeps one, and all of them together must fit a small server.
        pool = await asyncpg.create_pool(dsn, min_size=1, max_size=2, timeout=10)
    async with pool:
        yield pool


@asynccontextmanager
async def open_collector(settings: Settings) -> AsyncIterator[Ports]:
    """Open what the collector uses.

    Raises:
        LogUnavailable: Postgres cannot be reached.
    """
    async with (
        open_log(settings, role="collector", lanes=1) as log,
        open_ledger(settings.event_store.canonical_connection.dsn("collect")) as ledger,
        open_shelves(settings) as shelves,
    ):
        yield Ports(ledger, log.store, shelves)


@asynccontextmanager
async def open_copies(
    settings: Settings, pool: asyncpg.Pool, folder: Path
) -> AsyncIterator[Copies]:
    """Open the tiers that hold copies of results; files are in `folder` unless settings say."""
    from streams.results.copies.duckdb import DuckdbTier  # only workers need its engine

    clock, chosen = SystemClock(), settings.payload_store.results
    rows = DuckdbTier(folder / "results.duckdb", clock, chosen.duckdb_mb * MB)
    disk = Path(chosen.disk_path) if chosen.disk_path else folder / "results"
    volume = Path(chosen.pvc_path) if chosen.pvc_path else folder / "volume"
    is_volume = chosen.pvc_path is not None
    async with KafkaTier(settings.event_store.connection.url, clock) as kv:
        try:
            copies = Copies(
                {
                    "memory": MemoryTier(clock),
                    "kv": kv,
                    "db": PostgresTier(pool),
                    "disk": DiskTier(disk, clock, chosen.disk_mb * MB),
                    "pvc": DiskTier(volume, clock, chosen.pvc_mb * MB, is_volume=is_volume),
                    "duckdb": rows,
                }
            )
            async with copies.tended():
                yield copies
        finally:
            rows.close()


def sharing_terms(settings: Settings) -> Terms:
    """Return how this node shares memory: those with the same store share, nobody else does."""
    store = settings.payload_store
    cache, place = store.cache, store.connection
    return Terms(
        node_id=settings.runtime.node_id,
        space=space_in(
            Path(cache.tier_15_path), store.backend, place.endpoint, place.bucket, place.path
        ),
        budget_bytes=cache.tier_15_node_budget_mb * MB,
        life_s=settings.frames.lease_seconds + cache.tier_15_grace_seconds,
        sealed=cache.tier_15_carrier == "memfd",
    )


@asynccontextmanager
async def open_tiers(settings: Settings, *, consumer: str) -> AsyncIterator[TieredPayloads]:
    """Open the payload store with its tiers in front, for a process of this name.

    Raises:
        NoSuchBackend: this version cannot use the store.
    """
    cache, counts = settings.payload_store.cache, TierCounts(consumer)
    terms = sharing_terms(settings)
    disk_bytes = cache.tier_2_disk_gb * 1024 * MB
    caches = Caches(
        memory=ByteLru(cache.tier_1_memory_mb * MB) if cache.tier_1_memory_mb else None,
        shared=await asyncio.to_thread(open_shared_memory, terms, SystemClock(), counts),
        disk=await asyncio.to_thread(
            open_disk_cache, Path(cache.tier_2_disk_path), disk_bytes, counts
        ),
    )
    async with (
        open_payloads(settings) as durable,
        TieredPayloads(durable, caches, counts).tended() as tiers,
    ):
        yield tiers
