"""One suite for every result tier: it keeps copies, may lose them, and nothing is lost by that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.app import open_pool
from streams.clock import SystemClock
from streams.envelope.model import PayloadRef
from streams.payload.copies.disk import DiskTier
from streams.payload.copies.duckdb import DuckdbTier
from streams.payload.copies.kafka import PIECE_BYTES, KafkaTier
from streams.payload.copies.memory import MemoryTier
from streams.payload.copies.port import Copies, Copy, CopyFailed, ResultTier
from streams.payload.copies.postgres import PostgresTier
from streams.payload.memory import MemoryPayloadStore
from streams.payload.port import JSON, Scope
from streams.settings import Settings
from streams.worker.input import Documents
from tests.logs import dsn

KINDS = (
    *("memory", "disk", "pvc", "duckdb"),
    *(pytest.param(name, marks=pytest.mark.stack) for name in ("db", "kv")),
)
VALUE = {"rows": [{"n": n, "text": "ä\u0000\n\"'"} for n in range(50)], "a": None, "b": 1.5}


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> tuple[str, Settings | None]:
    """Which tier; the servers are started only where they are needed."""
    needs = {"db": "database", "kv": "settings"}.get(request.param)
    return request.param, None if needs is None else request.getfixturevalue(needs)


@pytest.fixture
async def tier(
    place: tuple[str, Settings | None], tmp_path: Path
) -> AsyncIterator[tuple[str, ResultTier]]:
    kind, settings = place
    async with AsyncExitStack() as stack:
        if kind == "memory":
            yield kind, MemoryTier()
        elif kind in ("disk", "pvc"):
            yield kind, DiskTier(tmp_path / kind)
        elif kind == "duckdb":
            duckdb = DuckdbTier(tmp_path / "results.duckdb")
            stack.callback(duckdb.close)
            yield kind, duckdb
        elif kind == "db":
            assert settings is not None
            pool = await stack.enter_async_context(open_pool(dsn(settings, "append")))
            yield kind, PostgresTier(pool)
        else:
            assert settings is not None
            yield kind, await _made(await stack.enter_async_context(_kafka(settings)))


def _kafka(settings: Settings) -> KafkaTier:
    return KafkaTier(
        settings.event_store.connection.url, SystemClock(), topic=f"test.results.{uuid4().hex}"
    )


async def _made(tier: KafkaTier) -> KafkaTier:
    """Make the topic of a tier."""
    admin = AIOKafkaAdminClient(bootstrap_servers=tier._bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(tier._topic, 1, 1)])
    finally:
        await admin.close()
    return tier


async def copied(store: MemoryPayloadStore, value: Any = VALUE, tenant: str = "acme") -> Copy:
    data = orjson.dumps(value)
    payload = await store.put(Scope(tenant, "care"), data, media_type=JSON)
    uri = f"noetl://execution/7/step/load/task/page/{uuid4().int >> 66}"
    return Copy(uri=uri, execution_id=7, step="load", task="page", payload=payload, data=data)


async def test_a_copy_comes_back_as_it_was(tier: tuple[str, ResultTier]) -> None:
    copy = await copied(MemoryPayloadStore(), {"own": uuid4().hex, **VALUE})
    assert await tier[1].get(copy.payload) is None
    await tier[1].put(copy)
    await tier[1].put(copy)
    assert await tier[1].get(copy.payload) == copy.data


async def test_a_lost_copy_is_read_from_the_payload_store(tier: tuple[str, ResultTier]) -> None:
    kind, one = tier
    store, copies = MemoryPayloadStore(), Copies({kind: one})
    copy = await copied(store)
    await copies.put(kind, copy)
    await one.delete(copy.payload)
    assert await one.get(copy.payload) is None
    assert await Documents(store, copies=copies).read(copy.payload, kind) == VALUE
    assert copies.misses == {kind: 1}


async def test_another_tenants_copy_is_not_found(tier: tuple[str, ResultTier]) -> None:
    store = MemoryPayloadStore()
    ours, theirs = await copied(store), await copied(store, tenant="globex")
    await tier[1].put(theirs)
    await tier[1].delete(ours.payload)
    assert await tier[1].get(ours.payload) is None
    assert await tier[1].get(theirs.payload) == theirs.data


@pytest.mark.stack
async def test_the_kv_tier_is_a_topic_that_others_read(settings: Settings) -> None:
    copy = await copied(MemoryPayloadStore())
    async with _kafka(settings) as one:
        await _made(one)
        await one.put(copy)
        async with KafkaTier(one._bootstrap, SystemClock(), topic=one._topic) as other:
            assert await _soon(other, copy.payload) == copy.data


@pytest.mark.stack
async def test_a_large_value_of_the_kv_tier_is_many_small_records(settings: Settings) -> None:
    store = MemoryPayloadStore()
    copies = [await copied(store, "x" * size) for size in (PIECE_BYTES - 2, 900_000)]
    async with _kafka(settings) as one:
        await _made(one)
        for copy in copies:
            await one.put(copy)
        async with KafkaTier(one._bootstrap, SystemClock(), topic=one._topic) as other:
            assert [await _soon(other, copy.payload) for copy in copies] == [
                copy.data for copy in copies
            ]
        sizes = await _record_sizes(one)
        assert (len(sizes), max(sizes) < 80_000) == (1 + 14, True)
        await one.delete(copies[1].payload)
        assert await one.get(copies[1].payload) is None
        assert (await _record_sizes(one, 15 + 14))[15:] == [0] * 14


async def _record_sizes(tier: KafkaTier, count: int = 15) -> list[int]:
    """Read the first records of a tier's topic; return the sizes of their values."""
    consumer = AIOKafkaConsumer(
        tier._topic, bootstrap_servers=tier._bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            return [len((await consumer.getone()).value or b"") for _ in range(count)]
    finally:
        await consumer.stop()


async def _soon(tier: ResultTier, ref: PayloadRef) -> bytes | None:
    async with asyncio.timeout(60):
        while (found := await tier.get(ref)) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found


@pytest.mark.stack
async def test_the_db_tier_is_a_table_to_ask(database: Settings) -> None:
    copy = await copied(MemoryPayloadStore(), {"own": uuid4().hex, "rows": [{"n": 5}]})
    async with open_pool(dsn(database, "append")) as pool:
        await PostgresTier(pool).put(copy)
    async with open_pool(dsn(database, "read")) as pool:
        asked = "SELECT data->'rows'->0->>'n' FROM noetl.result_data WHERE ref = $1"
        assert await pool.fetchval(asked, copy.uri) == "5"


async def test_memory_holds_no_more_than_its_room() -> None:
    tier, store = MemoryTier(room_bytes=250), MemoryPayloadStore()
    copies = [await copied(store, "x" * 98 + str(n)) for n in range(4)]
    for copy in copies:
        await tier.put(copy)
    kept = [await tier.get(copy.payload) is not None for copy in copies]
    assert kept == [False, False, True, True]


async def test_a_folder_holds_no_more_than_its_room(tmp_path: Path) -> None:
    store = MemoryPayloadStore()
    for n in range(3):
        await DiskTier(tmp_path, room_bytes=250).put(await copied(store, "x" * 98 + str(n)))
    assert len(_files(tmp_path)) == 2


async def test_a_volume_that_is_not_mounted_is_not_made(tmp_path: Path) -> None:
    tier, copy = DiskTier(tmp_path / "pvc", is_volume=True), await copied(MemoryPayloadStore())
    with pytest.raises(CopyFailed, match="mounted"):
        await tier.put(copy)
    assert not (tmp_path / "pvc").exists()
    (tmp_path / "pvc").mkdir()
    await tier.put(copy)
    assert await tier.get(copy.payload) == copy.data


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
