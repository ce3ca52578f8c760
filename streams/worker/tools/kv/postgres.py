"""The key-value store of playbooks in the table `noetl.kv`."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg
import orjson

from streams.events.model import Json
from streams.log.errors import LogUnavailable
from streams.postgres import queries, translated
from streams.worker.tools import exact_json
from streams.worker.tools.kv.port import KvBucket, KvEntry

query = queries("streams.worker.tools.kv")


class PostgresKv:
    """Values by bucket and key, through the login that appends."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def get(self, bucket: KvBucket, key: str) -> KvEntry | None:
        """Return the value of a key."""
        rows = await self._fetch("get", *_names(bucket), key)
        if not rows:
            return None
        value = rows[0]["value"]
        parsed = exact_json.loads(value) if isinstance(value, str) else value
        return KvEntry(parsed, rows[0]["revision"])

    async def put(
        self, bucket: KvBucket, key: str, value: Json, *, by: str, ttl_s: float | None
    ) -> int:
        """Store a value and return its revision."""
        text = orjson.dumps(value).decode()
        rows = await self._fetch("put", *_names(bucket), key, text, by, ttl_s)
        revision: int = rows[0]["revision"]
        return revision

    async def delete(self, bucket: KvBucket, key: str) -> bool:
        """Delete a key; return whether it existed."""
        return bool(await self._fetch("delete", *_names(bucket), key))

    async def keys(self, bucket: KvBucket) -> Sequence[str]:
        """Return the keys of a bucket in order."""
        return [row["key"] for row in await self._fetch("keys", *_names(bucket))]

    async def _fetch(self, name: str, *values: object) -> Sequence[asyncpg.Record]:
        with translated(LogUnavailable, f"kv {name}"):
            return list(await self._pool.fetch(query(name), *values))


def _names(bucket: KvBucket) -> tuple[str, str, str]:
    return bucket.tenant_id, bucket.organization_id, bucket.name
