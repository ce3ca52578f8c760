"""S3 clients and scratch buckets of benches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3

from streams.app import open_shelves
from streams.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def s3_client(settings: Settings) -> S3Client:
    """Return a boto3 client of the payload store."""
    store = settings.payload_store.connection
    access, secret = (
        None if key is None else key.get_secret_value()
        for key in (store.access_key, store.secret_key)
    )
    client: S3Client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=access,
        aws_secret_access_key=secret,
    )
    return client


@asynccontextmanager
async def scratch_bucket(settings: Settings) -> AsyncIterator[Settings]:
    """Yield settings that name a new bucket, which is removed afterwards.

    Raises:
        ValueError: the settings have no access keys.
    """
    store = settings.payload_store.connection
    if store.access_key is None or store.secret_key is None:
        raise ValueError("this bench needs an S3 server with given keys, such as the stack's own")
    name = f"scratch-{uuid4().hex}"
    connection = store.model_copy(update={"bucket": name})
    chosen = settings.payload_store.model_copy(update={"connection": connection})
    own = settings.model_copy(update={"payload_store": chosen})
    client = s3_client(settings)
    try:
        await asyncio.to_thread(client.create_bucket, Bucket=name)
        try:
            yield own
        finally:
            async with open_shelves(own) as shelves:
                async for stat in shelves.list():
                    await shelves.remove(stat.key)
            await asyncio.to_thread(client.delete_bucket, Bucket=name)
    finally:
        client.close()
