"""Wiring of projection stores: each projection in the store that the settings name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from streams.app.log import open_pool
from streams.projector.stores.business import StoredBusiness
from streams.projector.stores.duckdb import DuckdbRecords
from streams.projector.stores.port import RecordStore
from streams.projector.stores.postgres import PostgresRecords
from streams.projector.stores.rocksdb import RocksdbRecords
from streams.projector.stores.routed import Routes
from streams.projector.stores.sealed import SealedProjections
from streams.settings import Settings
from streams.settings.projections import DatabaseStore, FileStore, ProjectionStoreSettings

_FILES: Mapping[str, Callable[[Path], RecordStore]] = {
    "duckdb": DuckdbRecords,
    "rocksdb": RocksdbRecords,
}


@asynccontextmanager
async def open_routes(settings: Settings) -> AsyncIterator[Routes]:
    """Open the stores of all projections that are not in the default one.

    Files are opened when they are used, and created when a projector writes.

    Raises:
        Unavailable: a database cannot be reached.
    """
    named = settings.stores_of_projections
    async with AsyncExitStack() as stack:
        stores = {
            name: await _opened(stack, name, settings.projection_stores[name], settings)
            for name in sorted(set(named.values()))
        }
        # A store without a target is the database of the log: its rows are where they always are.
        routes = {projection: stores[name] for projection, name in named.items()}
        yield {name: store for name, store in routes.items() if store is not None}


async def _opened(
    stack: AsyncExitStack, name: str, store: ProjectionStoreSettings, settings: Settings
) -> StoredBusiness | None:
    records: RecordStore
    match store.target():
        case FileStore(engine, path):
            records = _FILES[engine](path)
        case DatabaseStore(dsn):
            limit_s = settings.runtime.call_limit_s
            records = PostgresRecords(
                await stack.enter_async_context(open_pool(dsn, limit_s=limit_s))
            )
        case None:
            return None
    return StoredBusiness(name, SealedProjections(records))
