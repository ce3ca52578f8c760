"""One suite for every result tier: it keeps copies, may lose them, and nothing is lost by that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import randbytes
from typing import Any
from uuid import uuid4

import orjson
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.app import open_pool
from streams.clock import Clock, SettableClock, SystemClock
from streams.events.model import PayloadRef
from streams.events.types import ResultExpired, ResultStored, typed
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import JSON, Scope
from streams.projector.postgres import PostgresProjections
from streams.projector.results import result_row
from streams.projector.rows import Changes
from streams.results.copies.disk import DiskTier
from streams.results.copies.duckdb import DuckdbTier
from streams.results.copies.kafka import PIECE_BYTES, KafkaTier
from streams.results.copies.memory import MemoryTier
from streams.results.copies.port import Copies, Copy, CopyFailed, ResultTier
from streams.results.copies.postgres import PostgresTier
from streams.settings import Settings
from streams.worker.attempt.input import Documents
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story, memory_log

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
def clock() -> SettableClock:
    """A clock beside Postgres's own, which the tier `db` goes by."""
    return SettableClock(datetime.now(UTC))


@pytest.fixture
async def tier(
    place: tuple[str, Settings | None], tmp_path: Path, clock: SettableClock
) -> AsyncIterator[tuple[str, ResultTier]]:
    kind, settings = place
    async with AsyncExitStack() as stack:
        if kind == "memory":
            yield kind, MemoryTier(clock)
        elif kind in ("disk", "pvc"):
            yield kind, DiskTier(tmp_path / kind, clock)
        elif kind == "duckdb":
            duckdb = DuckdbTier(tmp_path / "results.duckdb", clock)
            stack.callback(duckdb.close)
            yield kind, duckdb
        elif kind == "db":
            assert settings is not None
            pool = await stack.enter_async_context(open_pool(dsn(settings, "append")))
            yield kind, PostgresTier(pool)
        else:
            assert settings is not None
            yield kind, await _made(await stack.enter_async_context(_kafka(settings, clock)))


def _kafka(settings: Settings, clock: Clock) -> KafkaTier:
    return KafkaTier(
        settings.event_store.connection.url, clock, topic=f"test.results.{uuid4().hex}"
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


async def copied(
    store: MemoryPayloadStore,
    value: Any = VALUE,
    tenant: str = "acme",
    expires_at: datetime | None = None,
) -> Copy:
    data = orjson.dumps(value)
    payload = await store.put(Scope(tenant, "care"), data, media_type=JSON)
    uri = f"noetl://execution/7/step/load/task/page/{uuid4().int >> 66}"
    return Copy(
        uri=uri,
        execution_id=7,
        step="load",
        task="page",
        payload=payload,
        data=data,
        expires_at=expires_at,
    )


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


async def test_a_copy_is_swept_once_the_last_result_that_has_it_has_ended(
    tier: tuple[str, ResultTier], clock: SettableClock
) -> None:
    store, value = MemoryPayloadStore(), {"own": uuid4().hex}
    is_real = tier[0] == "db"  # a row has an end of its own there, by the server's clock
    soon = clock.now() + timedelta(seconds=1 if is_real else 60)
    first = await copied(store, value, expires_at=soon)
    again = await copied(store, value, expires_at=soon if is_real else soon + timedelta(hours=1))
    other = await copied(store, {"own": uuid4().hex})
    for copy in (first, again, other, first):
        await tier[1].put(copy)
    if is_real:
        await asyncio.sleep(1.5)
    else:
        clock.advance(61)
        await tier[1].sweep()
        assert await tier[1].get(first.payload) == first.data
        clock.advance(3600)
    await _gone(tier[1], first.payload)
    assert await tier[1].get(other.payload) == other.data


@pytest.mark.parametrize("kind", ["memory", "disk", "duckdb"])
async def test_a_copy_of_a_result_without_an_end_ends_all_the_same(
    kind: str, tmp_path: Path, clock: SettableClock
) -> None:
    rows = DuckdbTier(tmp_path / "results.duckdb", clock)
    tiers = {"memory": MemoryTier(clock), "disk": DiskTier(tmp_path, clock), "duckdb": rows}
    tier, copy = tiers[kind], await copied(MemoryPayloadStore())
    await tier.put(copy)
    days = 7 if kind == "duckdb" else 1
    clock.advance(days * 86_400 - 1)
    await tier.sweep()
    assert await tier.get(copy.payload) == copy.data
    clock.advance(1)
    await tier.sweep()
    assert await tier.get(copy.payload) is None
    rows.close()


async def test_tiers_are_swept_when_a_worker_begins(tmp_path: Path, clock: SettableClock) -> None:
    copy = await copied(MemoryPayloadStore(), expires_at=clock.now() + timedelta(minutes=1))
    for kind in ("disk", "pvc"):
        await DiskTier(tmp_path / kind, clock).put(copy)
    clock.advance(61)
    tiers = {kind: DiskTier(tmp_path / kind, clock) for kind in ("disk", "pvc")}
    async with Copies(tiers).tended(), asyncio.timeout(30):
        while _files(tmp_path):  # noqa: ASYNC110 - files make no sound
            await asyncio.sleep(0.01)


async def test_a_spoilt_copy_is_found_out_once(tmp_path: Path, clock: SettableClock) -> None:
    store, tier = MemoryPayloadStore(), DiskTier(tmp_path, clock)
    copy, copies = await copied(store), Copies({"disk": tier})
    await tier.put(copy)
    (file,) = _files(tmp_path)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert await copies.get("disk", copy.payload) is None
    assert _files(tmp_path) == []


@pytest.mark.stack
async def test_values_of_the_kv_tier_are_buried_by_who_lives_at_their_end(
    settings: Settings, clock: SettableClock
) -> None:
    store = MemoryPayloadStore()
    brief = await copied(store, "brief", expires_at=clock.now() + timedelta(minutes=5))
    lasting = await copied(store, "lasting", expires_at=clock.now() + timedelta(days=30))
    async with _kafka(settings, clock) as one:
        await _made(one)
        for copy in (brief, lasting):
            await one.put(copy)
    # Another process, whose table has no room for what it must bury.
    async with KafkaTier(one._bootstrap, clock, topic=one._topic, room_bytes=0) as other:
        assert await other.get(brief.payload) is None
        clock.advance(301)
        assert await _record_sizes(one, 3) == [7, 9, 0]
        clock.advance(86_400)
        assert await _record_sizes(one, 4) == [7, 9, 0, 0]


@pytest.mark.stack
async def test_the_kv_tier_is_a_topic_that_others_read(settings: Settings) -> None:
    copy = await copied(MemoryPayloadStore())
    async with _kafka(settings, SystemClock()) as one:
        await _made(one)
        await one.put(copy)
        async with KafkaTier(one._bootstrap, SystemClock(), topic=one._topic) as other:
            assert await _soon(other, copy.payload) == copy.data


@pytest.mark.stack
async def test_a_large_value_of_the_kv_tier_is_many_small_records(settings: Settings) -> None:
    store = MemoryPayloadStore()
    copies = [await copied(store, "x" * size) for size in (PIECE_BYTES - 2, 900_000)]
    async with _kafka(settings, SystemClock()) as one:
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


async def _gone(tier: ResultTier, ref: PayloadRef) -> None:
    """Sweep until a copy is gone: the reader of `kv` may not have come to it yet."""
    async with asyncio.timeout(60):
        while await tier.get(ref) is not None:
            await tier.sweep()
            await asyncio.sleep(0.05)


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


@pytest.mark.stack
async def test_a_nul_in_a_row_of_the_db_tier_fails_no_query(database: Settings) -> None:
    odd = ["a\0\0b", "\\\0", "\\u0000", "\\\\u0000", "\ufffd", "\\ufffd", "\\\ufffd\0"]
    copy = await copied(MemoryPayloadStore(), {"own": uuid4().hex, "odd": odd, "k\0": 1, "k": "ok"})
    async with open_pool(dsn(database, "append")) as pool:
        await PostgresTier(pool).put(copy)
        assert await PostgresTier(pool).get(copy.payload) == copy.data
    async with open_pool(dsn(database, "read")) as pool:
        asked = "SELECT data->>'k', data::jsonb->>'odd' FROM noetl.result_data WHERE ref = $1"
        found = await pool.fetchrow(asked, copy.uri)
    assert found is not None
    assert found[0] == "ok"
    assert orjson.loads(found[1]) == [one.replace("\0", "\ufffd") for one in odd]


@pytest.mark.stack
async def test_a_row_of_the_db_tier_goes_when_its_result_has_expired(database: Settings) -> None:
    store = MemoryPayloadStore()
    ended, lasting = [await copied(store, {"own": uuid4().hex}) for _ in range(2)]
    log, story = memory_log(), Story(7)
    for copy in (ended, lasting):
        meta = {"result_id": copy.uri.rpartition("/")[2], "task": "page"}
        meta |= {"store": "db", "scope": "execution"}
        fields = {"ref": copy.uri}
        await log.append([story.event("result.stored", meta=meta, result=fields, node_name="load")])
    expired = {"result_id": ended.uri.rpartition("/")[2], "reason": "scope"}
    await log.append([story.event("result.expired", meta=expired)])
    changes = Changes()
    async for event in log.read_root(story.root):
        if isinstance(known := typed(event), ResultStored | ResultExpired):
            changes.add([result_row(event, known)])
    async with (
        open_pool(dsn(database, "append")) as pool,
        open_pool(dsn(database, "project")) as projecting,
    ):
        tier = PostgresTier(pool)
        for copy in (ended, lasting):
            await tier.put(copy)
        await PostgresProjections(projecting).save(changes, ())
        assert await tier.get(ended.payload) is None
        assert await tier.get(lasting.payload) == lasting.data


async def test_memory_holds_no_more_than_its_room(clock: SettableClock) -> None:
    tier, store = MemoryTier(clock, room_bytes=250), MemoryPayloadStore()
    copies = [await copied(store, "x" * 98 + str(n)) for n in range(4)]
    for copy in copies:
        await tier.put(copy)
    kept = [await tier.get(copy.payload) is not None for copy in copies]
    assert kept == [False, False, True, True]


async def test_a_folder_never_holds_more_than_its_room(
    tmp_path: Path, clock: SettableClock
) -> None:
    store, room = MemoryPayloadStore(), 5_000
    tiers = [DiskTier(tmp_path, clock, room) for _ in range(2)]
    copies = [await copied(store, "x" * 500 + f"{n:03}") for n in range(60)]
    for n, copy in enumerate(copies):
        clock.advance(1)
        await tiers[n < 30].put(copy)
        assert sum(file.stat().st_size for file in _files(tmp_path)) <= room
    kept = [await tiers[0].get(copy.payload) is not None for copy in copies]
    assert 7 <= kept.count(True) <= 9
    assert kept == sorted(kept)
    await tiers[0].put(await copied(store, "x" * room))
    assert [await tiers[0].get(copy.payload) is not None for copy in copies] == kept


async def test_a_duckdb_file_does_not_grow_for_ever(tmp_path: Path, clock: SettableClock) -> None:
    store, room, path = MemoryPayloadStore(), 4 << 20, tmp_path / "results.duckdb"
    tier = DuckdbTier(path, clock, room)
    copies = [await copied(store, randbytes(100_000).hex()) for _ in range(100)]
    for copy in copies:
        clock.advance(1)
        await tier.put(copy)
        assert sum(file.stat().st_size for file in _files(tmp_path)) < 3 * room
    kept = [await tier.get(copy.payload) is not None for copy in copies]
    assert 10 <= kept.count(True) <= 21
    assert kept == sorted(kept)
    tier.close()


async def test_a_file_that_a_dying_writer_left_is_removed_in_time(
    tmp_path: Path, clock: SettableClock
) -> None:
    tier, left = DiskTier(tmp_path, clock), tmp_path / ".half"
    left.write_bytes(b"half of i")
    await tier.sweep()
    assert left.exists()
    clock.advance(3700)
    await tier.sweep()
    assert not left.exists()


async def test_a_volume_that_is_not_mounted_is_not_made(
    tmp_path: Path, clock: SettableClock
) -> None:
    tier = DiskTier(tmp_path / "pvc", clock, is_volume=True)
    copy = await copied(MemoryPayloadStore())
    await tier.sweep()
    with pytest.raises(CopyFailed, match="mounted"):
        await tier.put(copy)
    assert not (tmp_path / "pvc").exists()
    (tmp_path / "pvc").mkdir()
    await tier.put(copy)
    assert await tier.get(copy.payload) == copy.data


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
