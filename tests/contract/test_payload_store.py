"""What every payload store promises: in memory, in files and in S3 alike."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import aiohttp
import orjson
import pytest
from obstore.store import LocalStore, MemoryStore
from pydantic import SecretStr

from streams.app import open_payloads, open_shelves
from streams.clock import SystemClock
from streams.envelope.locator import BadLocator
from streams.envelope.model import PayloadRef
from streams.payload.blocks import BLOCK_BYTES, NoCipher, pack
from streams.payload.cloud import CloudObjects
from streams.payload.content import describe, key_of, trash_key
from streams.payload.counts import TierCounts
from streams.payload.errors import PayloadBomb, PayloadCorrupt, PayloadMissing, PayloadUnavailable
from streams.payload.keys import given
from streams.payload.local import LocalObjects
from streams.payload.memory import MemoryObjects
from streams.payload.objects import Shelves
from streams.payload.port import JSON, Compression, PayloadStore, Scope
from streams.payload.s3 import S3Objects
from streams.payload.store import ContentStore
from streams.payload.tiers import TieredPayloads
from streams.settings import Settings
from tests.tiers import node_caches

COMPRESSIONS: tuple[Compression, ...] = ("none", "zstd", "lz4", "gzip")
ACME = Scope("acme", "care")


HERE = ("memory", "tiers", "local", "obstore-memory", "obstore-local")
ELSEWHERE = os.environ.get("STREAMS_TEST_PAYLOAD_STORE")
"""A `payload_store` section as JSON: the suite then runs on that store, too (docs/payloads.md)."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A store that packs, and the place its objects lie in."""

    store: PayloadStore
    shelves: Shelves

    async def damage(self, ref: PayloadRef, data: bytes) -> None:
        await self.shelves.write(key_of(ref), data)


@pytest.fixture(
    params=[
        *HERE,
        pytest.param("s3", marks=pytest.mark.stack),
        *(["elsewhere"] if ELSEWHERE else []),
    ]
)
def place(request: pytest.FixtureRequest) -> str | Settings:
    """Which adapter; the servers are started only where they are needed."""
    if request.param == "elsewhere":
        return Settings.model_validate({"payload_store": orjson.loads(ELSEWHERE or "{}")})
    found: str | Settings = (
        request.getfixturevalue("settings") if request.param == "s3" else request.param
    )
    return found


@pytest.fixture
async def shelves(place: str | Settings, tmp_path: Path) -> AsyncIterator[Shelves]:
    if isinstance(place, Settings):
        async with open_shelves(place) as opened:
            yield opened
    else:
        made: dict[str, Callable[[], Shelves]] = {
            "memory": MemoryObjects,
            "tiers": MemoryObjects,
            "local": lambda: LocalObjects(tmp_path),
            "obstore-memory": lambda: CloudObjects(MemoryStore()),
            "obstore-local": lambda: CloudObjects(LocalStore(tmp_path, mkdir=True)),
        }
        yield made[place]()


@pytest.fixture
def subject(place: str | Settings, shelves: Shelves, tmp_path: Path) -> Subject:
    store: PayloadStore = ContentStore(shelves, compression="zstd", known_s=0)
    if place == "tiers":
        # Without tier 1, or nobody would notice a damaged store.
        store = TieredPayloads(store, node_caches(tmp_path), TierCounts())
    return Subject(store, shelves)


@pytest.fixture
def store(subject: Subject) -> PayloadStore:
    return subject.store


@pytest.fixture
def data() -> bytes:
    """Bytes that no other test has stored."""
    return b"payload " + uuid4().bytes


@pytest.fixture
def large() -> bytes:
    """A block and a quarter, of which half can be packed."""
    return (os.urandom(2048) + bytes(2048)) * (BLOCK_BYTES // 4096 * 5 // 4)


async def test_what_was_put_comes_back(store: PayloadStore, data: bytes) -> None:
    ref = await store.put(ACME, data, media_type=JSON, row_count=3, schema_digest="d")
    assert await store.get(ref) == data
    assert (ref.byte_length, ref.row_count, ref.schema_digest) == (len(data), 3, "d")
    assert ref.compression is None


async def test_a_reference_is_named_by_scope_and_content(store: PayloadStore, data: bytes) -> None:
    ref = await store.put(ACME, data, media_type=JSON)
    assert ref.uri == f"noetl://tenant/acme/org/care/payloads/sha256/{ref.sha256}"


async def test_the_same_bytes_give_the_same_reference(store: PayloadStore, data: bytes) -> None:
    refs = await asyncio.gather(*(store.put(ACME, data, media_type=JSON) for _ in range(5)))
    assert len(set(refs)) == 1
    assert await store.get(refs[0]) == data


async def test_empty_bytes_are_a_payload_too(store: PayloadStore) -> None:
    scope = Scope("acme", f"empty-{uuid4().hex}")
    ref = await store.put(scope, b"", media_type=JSON)
    assert await store.exists(ref)
    assert await store.get(ref) == b""


async def test_another_organization_has_another_object(store: PayloadStore, data: bytes) -> None:
    ours = await store.put(ACME, data, media_type=JSON)
    theirs = await store.put(Scope("acme", "other"), data, media_type=JSON)
    await store.delete(theirs)
    assert await store.get(ours) == data
    assert not await store.exists(theirs)


async def test_names_with_signs_in_them_stay_apart(store: PayloadStore, data: bytes) -> None:
    odd = await store.put(Scope("a/b", "c d~é%"), data, media_type=JSON)
    assert await store.get(odd) == data
    plain = await store.put(Scope("a", "b"), data, media_type=JSON)
    await store.delete(plain)
    assert await store.get(odd) == data


async def test_a_deleted_payload_is_missing(store: PayloadStore, data: bytes) -> None:
    ref = await store.put(ACME, data, media_type=JSON)
    await store.delete(ref)
    await store.delete(ref)
    assert not await store.exists(ref)
    with pytest.raises(PayloadMissing):
        await store.get(ref)


async def test_a_deleted_payload_can_be_put_again(store: PayloadStore, data: bytes) -> None:
    ref = await store.put(ACME, data, media_type=JSON)
    await store.delete(ref)
    assert await store.put(ACME, data, media_type=JSON) == ref
    assert await store.get(ref) == data


@pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: b"P" + d[1:], lambda d: b""])
async def test_damaged_bytes_are_not_handed_out(
    subject: Subject, data: bytes, change: Callable[[bytes], bytes]
) -> None:
    ref = await subject.store.put(ACME, data, media_type=JSON)
    await subject.damage(ref, change(data))
    with pytest.raises(PayloadCorrupt):
        await subject.store.get(ref)


async def test_a_reference_whose_digest_is_not_its_name_is_missing(
    store: PayloadStore, data: bytes
) -> None:
    ref = await store.put(ACME, data, media_type=JSON)
    with pytest.raises(PayloadMissing):
        await store.get(replace(ref, sha256="0" * 64))


async def test_a_megabyte_goes_through(store: PayloadStore) -> None:
    data = uuid4().bytes * 65_536
    assert await store.get(await store.put(ACME, data, media_type=JSON)) == data


async def test_a_payload_of_many_pieces_streams_in_and_out(
    store: PayloadStore, large: bytes
) -> None:
    ref = await store.store(ACME, _pieces(large, 700_001), media_type=JSON, row_count=3)
    assert (ref.byte_length, ref.row_count) == (len(large), 3)
    assert b"".join([piece async for piece in store.fetch(ref)]) == large
    assert await store.get(ref) == large


async def test_it_does_not_matter_whether_bytes_were_put_or_streamed(
    store: PayloadStore, data: bytes, large: bytes
) -> None:
    for content in (b"", data, large):
        streamed = await store.store(ACME, _pieces(content, 300_000), media_type=JSON)
        assert await store.put(ACME, content, media_type=JSON) == streamed
        assert b"".join([piece async for piece in store.fetch(streamed)]) == content


async def test_a_reader_may_stop_early(store: PayloadStore, large: bytes) -> None:
    ref = await store.put(ACME, large, media_type=JSON)
    async with aclosing(store.fetch(ref)) as pieces:  # type: ignore[type-var]
        assert large.startswith(await anext(pieces))


@pytest.mark.parametrize("compression", ["zstd", "lz4", "gzip"])
async def test_what_can_be_packed_is_packed(
    subject: Subject, large: bytes, compression: Compression
) -> None:
    ref = await subject.store.put(ACME, large, media_type=JSON, compression=compression)
    assert ref.compression == compression
    stat = await subject.shelves.stat(key_of(ref))
    assert stat is not None
    assert stat.byte_length < 0.8 * len(large)
    assert await subject.store.get(ref) == large


async def test_readers_do_not_depend_on_the_codec_of_the_reference(
    subject: Subject, large: bytes
) -> None:
    refs = [
        await subject.store.put(ACME, large, media_type=JSON, compression=compression)
        for compression in COMPRESSIONS
    ]
    assert len({key_of(ref) for ref in refs}) == 1
    for ref in refs:
        assert await subject.store.get(ref) == large
    await subject.damage(refs[0], large)
    for ref in refs:
        assert await subject.store.get(ref) == large
        assert b"".join([piece async for piece in subject.store.fetch(ref)]) == large


@pytest.mark.parametrize("compression", ["zstd", "none"])
async def test_a_payload_that_looks_like_a_packed_object_comes_back(
    store: PayloadStore, data: bytes, compression: Compression
) -> None:
    packed = pack(ACME, data * 1000, "zstd", NoCipher())
    for content in (packed, packed[:30], packed[:14], packed[:5]):
        ref = await store.put(ACME, content, media_type=JSON, compression=compression)
        assert await store.get(ref) == content
        assert b"".join([piece async for piece in store.fetch(ref)]) == content


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d[:-1],
        lambda d: d[:30],
        lambda d: d[:-1] + bytes([d[-1] ^ 1]),
        lambda d: d[:13] + b"\x09" + d[14:],
        lambda d: d[:14] + b"\x09" + d[15:],
        lambda d: d[:16] + b"\xff\xff\xff\xff" + d[20:],
        lambda d: d + d,
        lambda d: d + b"more",
    ],
)
async def test_a_damaged_packed_object_is_not_handed_out(
    subject: Subject, large: bytes, change: Callable[[bytes], bytes]
) -> None:
    ref = await subject.store.put(ACME, large, media_type=JSON)
    stored = await subject.shelves.read(key_of(ref), at_most=2 * len(large))
    await subject.damage(ref, change(stored))
    with pytest.raises(PayloadCorrupt):
        await subject.store.get(ref)
    with pytest.raises(PayloadCorrupt):
        async for _ in subject.store.fetch(ref):
            pass


async def test_a_bomb_is_not_unpacked(subject: Subject, data: bytes) -> None:
    ref = await subject.store.put(ACME, data, media_type=JSON)
    await subject.damage(ref, pack(ACME, bytes(64 << 20), "zstd", NoCipher()))
    with pytest.raises(PayloadBomb, match="more than 24 bytes"):
        async for _ in subject.store.fetch(ref):
            pass
    with pytest.raises(PayloadCorrupt):
        await subject.store.get(ref)


async def test_an_object_that_is_too_long_is_not_read(subject: Subject, data: bytes) -> None:
    ref = await subject.store.put(ACME, data, media_type=JSON)
    await subject.damage(ref, data * 100_000)
    with pytest.raises(PayloadCorrupt, match="too long"):
        await subject.store.get(ref)
    with pytest.raises(PayloadBomb):
        async for _ in subject.store.fetch(ref):
            pass


@pytest.mark.parametrize("part", ["..", "a/../b", "%2e%2e", "a%00b"])
async def test_a_reference_cannot_leave_its_folder(
    store: PayloadStore, data: bytes, part: str
) -> None:
    ref = await store.put(ACME, data, media_type=JSON)
    foreign = replace(ref, uri=ref.uri.replace("/care/", f"/{part}/"))
    for attempt in (store.get, store.exists, store.delete):
        with pytest.raises((BadLocator, PayloadMissing)):
            await attempt(foreign)
    assert await store.get(ref) == data


async def test_what_lies_in_the_trash_is_still_read(subject: Subject, large: bytes) -> None:
    ref = await subject.store.put(ACME, large, media_type=JSON)
    await subject.shelves.move(key_of(ref), trash_key(key_of(ref)))
    assert await subject.shelves.stat(key_of(ref)) is None
    assert await subject.store.exists(ref)
    assert await subject.store.get(ref) == large
    assert b"".join([piece async for piece in subject.store.fetch(ref)]) == large
    await subject.store.delete(ref)
    assert not await subject.store.exists(ref)


async def test_objects_are_listed_with_their_length_and_time(
    subject: Subject, data: bytes, large: bytes
) -> None:
    organization = f"list-{uuid4().hex}"
    prefix = f"acme/{organization}/sha256/"
    assert [stat async for stat in subject.shelves.list(prefix)] == []
    began = datetime.now(UTC) - timedelta(seconds=2)
    refs = [
        await subject.store.put(Scope("acme", organization), content, media_type=JSON)
        for content in (data, large)
    ]
    found = [stat async for stat in subject.shelves.list(prefix)]
    assert {stat.key for stat in found} == {key_of(ref) for ref in refs}
    for stat in found:
        assert stat.byte_length > 0
        assert began <= stat.modified_at <= datetime.now(UTC) + timedelta(seconds=2)
    for ref in refs:
        await subject.store.delete(ref)


async def test_moving_gives_an_object_the_present_time(subject: Subject, data: bytes) -> None:
    ref = await subject.store.put(Scope("acme", f"move-{uuid4().hex}"), data, media_type=JSON)
    key, trash = key_of(ref), trash_key(key_of(ref))
    before = await subject.shelves.stat(key)
    assert before is not None
    await asyncio.sleep(1.1)  # places that count in seconds must show a difference
    await subject.shelves.move(key, trash)
    await subject.shelves.move(key, trash)
    (after,) = [stat async for stat in subject.shelves.list(trash.rpartition("/")[0] + "/")]
    assert (after.key, after.modified_at > before.modified_at) == (trash, True)
    await subject.store.delete(ref)


async def test_what_was_put_lately_is_not_put_again(shelves: Shelves, data: bytes) -> None:
    now = [0.0]
    store = ContentStore(shelves, known_s=600, monotonic=lambda: now[0])
    ref = await store.put(ACME, data, media_type=JSON)
    await shelves.remove(key_of(ref))
    await store.put(ACME, data, media_type=JSON)
    assert not await store.exists(ref)
    now[0] = 600.0
    await store.put(ACME, data, media_type=JSON)
    assert await store.get(ref) == data


async def test_a_half_written_object_is_written_again(
    subject: Subject, data: bytes, large: bytes
) -> None:
    """A server that died during a put leaves a short object; another process repairs it."""
    for content in (data, large):
        ref = await subject.store.put(ACME, content, media_type=JSON)
        await subject.damage(ref, content[:4])
        await subject.store.put(ACME, content, media_type=JSON)
        assert await subject.store.get(ref) == content


async def _pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@pytest.mark.stack
async def test_wrong_keys_are_said(settings: Settings, data: bytes, large: bytes) -> None:
    connection = settings.payload_store.connection.model_copy(
        update={"access_key": SecretStr("nobody"), "secret_key": SecretStr("wrong")}
    )
    chosen = settings.payload_store.model_copy(update={"connection": connection})
    async with open_payloads(settings.model_copy(update={"payload_store": chosen})) as store:
        with pytest.raises(PayloadUnavailable, match="keys"):
            await store.put(ACME, data, media_type=JSON)
        with pytest.raises(PayloadUnavailable, match="keys"):
            await store.store(ACME, _pieces(large, BLOCK_BYTES), media_type=JSON)


@pytest.mark.stack
async def test_a_missing_bucket_is_not_a_missing_payload(settings: Settings, data: bytes) -> None:
    connection = settings.payload_store.connection.model_copy(update={"bucket": "nowhere"})
    chosen = settings.payload_store.model_copy(update={"connection": connection})
    async with open_payloads(settings.model_copy(update={"payload_store": chosen})) as store:
        ref = describe(ACME, data, media_type=JSON)
        with pytest.raises(PayloadUnavailable, match="bucket"):
            await store.get(ref)


async def test_a_store_that_is_down_is_unavailable(data: bytes) -> None:
    async with aiohttp.ClientSession() as session:
        objects = S3Objects(
            session,
            base_url="http://127.0.0.1:9/bucket",
            region="us-east-1",
            keys=given("a", "b"),
            now=SystemClock().now,
            large=MemoryObjects(),
            pauses_s=(0.0,),
        )
        with pytest.raises(PayloadUnavailable, match="is up"):
            await ContentStore(objects).put(ACME, data, media_type=JSON)
