"""Values of playbooks in the log's database."""

from __future__ import annotations

import asyncio

import pytest

from streams.app import open_log
from streams.settings import Settings
from streams.worker.tools.kv.port import KvBucket
from streams.worker.tools.kv.postgres import PostgresKv

pytestmark = pytest.mark.stack
BUCKET = KvBucket("acme", "care", "b")


async def test_values_are_stored_with_their_revision_until_they_expire(database: Settings) -> None:
    async with open_log(database, role="test") as log:
        kv = PostgresKv(log.pool)
        assert await kv.get(BUCKET, "k") is None
        assert await kv.put(BUCKET, "k", {"a": [1, None]}, by="1", ttl_s=None) == 1
        assert await kv.put(BUCKET, "k", "x", by="2", ttl_s=None) == 2
        assert await kv.put(BUCKET, "k", "y", by="2", ttl_s=None) == 2
        found = await kv.get(BUCKET, "k")
        assert found is not None
        assert (found.value, found.revision) == ("x", 2)
        await kv.put(BUCKET, "brief", 1, by="1", ttl_s=0.1)
        await asyncio.sleep(0.2)
        assert await kv.get(BUCKET, "brief") is None
        assert await kv.keys(BUCKET) == ["k"]
        assert await kv.keys(KvBucket("acme", "other", "b")) == []
        assert await kv.delete(BUCKET, "k") is True
        assert await kv.delete(BUCKET, "k") is False
