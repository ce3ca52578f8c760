"""Everything that a runtime has written, place by place, for whoever looks for a secret in it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import asyncpg
import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from streams.app import sharing_terms
from streams.payload.objects.blocks import BadBlock, NoCipher, unpack
from streams.payload.objects.open import open_shelves
from streams.payload.port import Scope
from streams.settings import Settings
from tests.support.servers.runtime import Runtime

LARGE = 1 << 30
RESULTS = "SELECT ref FROM noetl.result_ref WHERE execution_id >= $1 AND expired_at IS NULL"
Found = Sequence[tuple[str, bytes]]
"""Where each piece was found, and its bytes."""


async def written(runtime: Runtime, since: int) -> dict[str, Found]:
    """Return what is in the database, topics, objects, answers of the API, and files.

    Of the API it is what it tells about executions from `since` on.
    """
    return {
        "schema": await _schema(runtime.settings),
        "topics": await asyncio.to_thread(_topics, runtime.settings.event_store.connection.url),
        "objects": await _objects(runtime.settings),
        "answers": await _answers(runtime, since),
        "files": list(_files(runtime.data)),
    }


def shared(settings: Settings) -> Found:
    """Return what this stack's processes share in memory now; it is there for a minute."""
    space = sharing_terms(settings).space
    return [(one.name, one.read_bytes()) for one in space.folder.glob(f"{space.prefix}*")]


async def _schema(settings: Settings) -> Found:
    """Return every row of every table of the schema, as text."""
    database = settings.event_store.canonical_connection
    owner = await asyncpg.connect(database.dsn("owner"))
    try:
        tables = await owner.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'noetl'::regnamespace "
            "AND relkind = 'r'"
        )
        found = []
        for table in (row["relname"] for row in tables):
            rows = await owner.fetch(f'SELECT t::text AS row FROM noetl."{table}" t')
            found += [(table, row["row"].encode()) for row in rows]
            raw = "envelope" if table.startswith("event_") else None
            if raw and rows:
                envelopes = await owner.fetch(f'SELECT envelope FROM noetl."{table}"')
                found += [(table, row["envelope"]) for row in envelopes]
        return found
    finally:
        await owner.close()


def _topics(bootstrap: str) -> Found:
    """Return every record of every topic: key, value and headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"search-{uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        waiting = {
            (name, number)
            for name, topic in consumer.list_topics(timeout=30).topics.items()
            for number in topic.partitions
        }
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in waiting])
        found: list[tuple[str, bytes]] = []
        until = time.monotonic() + 120
        while waiting:
            assert time.monotonic() < until, f"{waiting} cannot be read to their ends"
            for record in consumer.consume(500, timeout=1):
                if (error := record.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard((record.topic(), record.partition()))
                    continue
                headers = b" ".join(value or b"" for _, value in record.headers() or ())
                parts = (record.key() or b"", record.value() or b"", headers)
                found.append((record.topic(), b" ".join(parts)))
        return found
    finally:
        consumer.close()


async def _objects(settings: Settings) -> Found:
    """Return every object of the store, as it was before it was packed."""
    found = []
    async with open_shelves(settings) as shelves:
        async for one in shelves.list():
            stored = await shelves.read(one.key, at_most=LARGE)
            try:
                found.append((one.key, unpack(Scope("", ""), stored, LARGE, NoCipher())))
            except BadBlock:
                found.append((one.key, stored))
    return found


async def _answers(runtime: Runtime, since: int) -> Found:
    """Return what the API tells of everything."""
    found = []
    async with aiohttp.ClientSession(runtime.api()) as session:

        async def get(path: str, **query: str) -> Any:
            async with session.get(path, params=query) as answer:
                assert answer.status == 200, path
                body = await answer.read()
                found.append((path, body + repr(answer.headers).encode()))
                return body

        await get("/api/credentials")
        for entry in orjson.loads(await get("/api/catalog"))["catalog"]:
            await get(f"/api/catalog/{entry['path']}")
        listed = orjson.loads(await get("/api/executions", limit="1000"))["executions"]
        for one in (one["execution_id"] for one in listed if int(one["execution_id"]) >= since):
            await get(f"/api/executions/{one}")
            await get(f"/api/executions/{one}/events", limit="1000", resolve="1")
        for (ref,) in await runtime.executions.connection.fetch(RESULTS, since):
            await get("/api/result/resolve", ref=ref)
            await get("/api/result/resolve", ref=ref, form="ref")
    return found


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the stack's folder: logs, tables, databases, objects."""
    for folder, _, names in os.walk(data):
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(data)), path.read_bytes()
