"""The Iceberg table of the lake: found in its catalog, read with DuckDB, dropped."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import duckdb

from streams.analytics.counts import Counts, analytics_database
from streams.analytics.errors import SinkUnavailable
from streams.payload.objects.buckets import s3_bucket
from streams.payload.objects.cloud import CloudObjects
from streams.postgres import translated
from streams.settings import Settings
from streams.worker.tools.duckdb_extensions import load_extension

CATALOG, NAMESPACE, TABLE = "lake", "noetl", "event"
_LOCATION = """
SELECT metadata_location FROM iceberg_tables
WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3"""
_DROP = """
DELETE FROM iceberg_tables
WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3"""
_COUNT = """
SELECT tenant_id, event_type, count(*) FROM iceberg_scan(?)
WHERE position <= ? GROUP BY ALL"""


async def metadata_location(settings: Settings, table: str = TABLE) -> str | None:
    """Return the address of a table's newest metadata; None before its first commit."""
    async with analytics_database(settings) as database:
        if await database.fetchval("SELECT to_regclass('iceberg_tables')") is None:
            return None
        with translated(SinkUnavailable, "read the lake's catalog"):
            location: str | None = await database.fetchval(_LOCATION, CATALOG, NAMESPACE, table)
            return location


async def drop_table(settings: Settings) -> None:
    """Remove the table from its catalog, then its files from the bucket."""
    async with analytics_database(settings) as database:
        if await database.fetchval("SELECT to_regclass('iceberg_tables')") is not None:
            with translated(SinkUnavailable, "drop the lake's table"):
                await database.execute(_DROP, CATALOG, NAMESPACE, TABLE)
    place, limit_s = settings.payload_store.connection, settings.runtime.append_limit_s
    bucket = place.model_copy(update={"bucket": settings.analytics.lake_bucket})
    encrypt = settings.payload_store.encryption_at_rest
    files = CloudObjects(s3_bucket(bucket, encrypt=encrypt, limit_s=limit_s))
    found = [file.key async for file in files.list(f"warehouse/{NAMESPACE}/{TABLE}/")]
    for key in found:
        await files.remove(key)


async def counts_of_lake(settings: Settings, until: int) -> Counts:
    """Count the rows of the lake up to a position; none before its first commit.

    Raises:
        SinkUnavailable: the catalog or the object store does not answer.
    """
    location = await metadata_location(settings)
    return {} if location is None else await asyncio.to_thread(_count, settings, location, until)


def lake_session(settings: Settings) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB session that can read the lake's files."""
    session = duckdb.connect()
    for name in ("httpfs", "avro", "iceberg"):
        load_extension(session, name)
    store = settings.payload_store.connection
    address = urlsplit(store.endpoint or "")
    parts = [f"REGION {_quoted(store.region)}"]
    if store.endpoint is not None:
        secure = "true" if address.scheme == "https" else "false"
        parts += [f"ENDPOINT {_quoted(address.netloc)}", "URL_STYLE 'path'", f"USE_SSL {secure}"]
    if store.access_key is not None and store.secret_key is not None:
        parts.append(f"KEY_ID {_quoted(store.access_key.get_secret_value())}")
        parts.append(f"SECRET {_quoted(store.secret_key.get_secret_value())}")
    session.execute(f"CREATE SECRET lake (TYPE s3, {', '.join(parts)})")
    return session


def _count(settings: Settings, location: str, until: int) -> Counts:
    session = lake_session(settings)
    try:
        rows = session.execute(_COUNT, [location, until]).fetchall()
    except duckdb.Error as error:
        raise SinkUnavailable(f"DuckDB cannot read {location}: {error}") from error
    finally:
        session.close()
    return {(row[0], row[1]): row[2] for row in rows}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
