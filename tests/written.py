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

from streams.app import open_payloads
from streams.payload.content import reference_from
from streams.settings import Settings
from tests.runtime import Runtime

Found = Sequence[tuple[str, bytes]]
"""Where each piece was found, and its bytes."""


async def written(runtime: Runtime) -> dict[str, Found]:
    """Return what is in the database, topics, payloads, answers of the API, and files."""
    return {
        "schema": await _schema(runtime.settings),
        "topics": await asyncio.to_thread(_topics, runtime.settings.event_store.connection.url),
        "payloads": await _payloads(runtime.settings),
        "answers": await _answers(runtime.api()),
        "files": list(_files(runtime.data)),
    }


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


async def _payloads(settings: Settings) -> Found:
    """Return every payload that an event refers to, as it was before it was packed."""
    database = settings.event_store.canonical_connection
    reading = await asyncpg.connect(database.dsn("read"))
    try:
        rows = await reading.fetch(
            "SELECT DISTINCT payload_ref::text FROM noetl.event WHERE payload_ref IS NOT NULL"
        )
    finally:
        await reading.close()
    found = []
    async with open_payloads(settings) as payloads:
        for (text,) in rows:
            ref = reference_from(orjson.loads(text))
            found.append((ref.uri, await payloads.get(ref)))
    return found


async def _answers(url: str) -> Found:
    """Return what the API tells of everything."""
    found = []
    async with aiohttp.ClientSession(url) as session:

        async def get(path: str) -> Any:
            async with session.get(path) as answer:
                assert answer.status == 200, path
                body = await answer.read()
                found.append((path, body + repr(answer.headers).encode()))
                return orjson.loads(body)

        await get("/api/credentials")
        for entry in (await get("/api/catalog"))["catalog"]:
            await get(f"/api/catalog/{entry['path']}")
        for execution in (await get("/api/executions?limit=1000"))["executions"]:
            await get(f"/api/executions/{execution['execution_id']}")
            await get(f"/api/executions/{execution['execution_id']}/events?limit=1000")
    return found


def _files(data: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the stack's folder: logs, tables, databases, objects."""
    for folder, _, names in os.walk(data):
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(data)), path.read_bytes()
