"""Where payload objects lie, by the settings; light, for processes that do nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from streams.clock import SystemClock
from streams.payload.objects.access_keys import found, given
from streams.payload.objects.buckets import azure_container, gcs_bucket, s3_bucket
from streams.payload.objects.cloud import CloudObjects
from streams.payload.objects.local import LocalObjects
from streams.payload.objects.port import Shelves
from streams.payload.objects.s3 import S3Objects
from streams.payload.port import PayloadStore
from streams.payload.store import ContentStore
from streams.settings import Settings


@asynccontextmanager
async def open_payloads(settings: Settings) -> AsyncIterator[PayloadStore]:
    """Open the payload store that the settings name.

    Raises:
        NoSuchBackend: the settings do not say enough to open it.
        PayloadUnavailable: there are no keys to it.
    """
    async with open_shelves(settings) as shelves:
        yield ContentStore(shelves, compression=settings.serialization.compression)


@asynccontextmanager
async def open_shelves(settings: Settings) -> AsyncIterator[Shelves]:
    """Open the place where payload objects lie.

    Raises:
        NoSuchBackend: the settings do not say enough to open it.
        PayloadUnavailable: there are no keys to it.
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
    if place.access_key is not None and place.secret_key is not None:
        keys = given(place.access_key.get_secret_value(), place.secret_key.get_secret_value())
    else:
        keys = found()
    return S3Objects(
        session,
        base_url=f"{place.endpoint.rstrip('/')}/{place.bucket}" if place.endpoint else aws,
        region=place.region,
        keys=keys,
        now=SystemClock().now,
        large=CloudObjects(s3_bucket(place, encrypt=chosen.encryption_at_rest)),
        encrypt=chosen.encryption_at_rest,
    )
