"""Opens the payload store of the settings; light, for processes that do nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from streams.metrics.exposition import RoleMetrics
from streams.payload.objects.buckets import azure_container, gcs_bucket, s3_bucket
from streams.payload.objects.cloud import CloudObjects
from streams.payload.objects.local import LocalObjects
from streams.payload.objects.port import Shelves
from streams.payload.port import PayloadStore
from streams.payload.store import ContentStore
from streams.settings import Settings


@asynccontextmanager
async def open_payloads(
    settings: Settings, metrics: RoleMetrics | None = None
) -> AsyncIterator[PayloadStore]:
    """Open the payload store of the settings; add its counts to the process's metrics.

    Raises:
        NoSuchBackend: the settings are incomplete.
        PayloadUnavailable: there are no keys for it.
    """
    async with open_shelves(settings) as shelves:
        store = ContentStore(shelves, compression=settings.serialization.compression)
        if metrics is not None:
            metrics.add(store.counts.samples)
        yield store


@asynccontextmanager
async def open_shelves(settings: Settings) -> AsyncIterator[Shelves]:
    """Open the object store of the payloads.

    Raises:
        NoSuchBackend: the settings are incomplete.
        PayloadUnavailable: there are no keys for it.
    """
    chosen, place = settings.payload_store, settings.payload_store.connection
    limit_s = settings.runtime.append_limit_s
    if chosen.backend == "local":
        assert place.path is not None
        yield LocalObjects(Path(place.path))
    elif chosen.backend == "gcs":
        yield CloudObjects(gcs_bucket(place, limit_s=limit_s))
    elif chosen.backend == "azure-blob":
        yield CloudObjects(azure_container(place, limit_s=limit_s))
    else:
        yield CloudObjects(s3_bucket(place, encrypt=chosen.encryption_at_rest, limit_s=limit_s))
