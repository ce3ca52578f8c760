"""What every payload store promises of what it packs, and of objects that it did not write."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from streams.events.locator import BadLocator
from streams.payload.content import key_of
from streams.payload.errors import PayloadBomb, PayloadCorrupt, PayloadMissing
from streams.payload.objects.blocks import BLOCK_BYTES, NoCipher, pack
from streams.payload.objects.port import Shelves
from streams.payload.port import JSON, Compression, PayloadStore
from streams.payload.store import ContentStore
from tests.support.payload.stores import ACME, COMPRESSIONS, Shifted, Subject, alike, pieces


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


async def test_what_packs_well_is_fetched_in_little_memory(subject: Subject, data: bytes) -> None:
    """Its object is one small piece, which must not become all of the payload at once."""
    ref = await subject.store.store(ACME, alike(data * 8192, 256), media_type=JSON)
    assert ref.byte_length == 48 << 20
    tracemalloc.start()
    try:
        length = 0
        async for piece in subject.store.fetch(ref):
            length += len(piece)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        await subject.store.delete(ref)
    assert length == ref.byte_length
    assert peak < 12 << 20


async def test_a_store_with_a_cipher_keeps_nothing_that_is_not_sealed(
    shelves: Shelves, data: bytes
) -> None:
    sealed = ContentStore(shelves, cipher=Shifted(), known_s=0)
    open_to_all = ContentStore(shelves, known_s=0)
    content = data * (BLOCK_BYTES // 12)
    for ref in (
        await sealed.put(ACME, data, media_type=JSON),
        await sealed.store(ACME, pieces(content, 700_001), media_type=JSON, compression="none"),
    ):
        assert data not in await shelves.read(key_of(ref), at_most=2 * len(content))
        whole = await sealed.get(ref)
        assert b"".join([piece async for piece in sealed.fetch(ref)]) == whole
        with pytest.raises(PayloadCorrupt, match="cipher 7"):
            await open_to_all.get(ref)
        with pytest.raises(PayloadCorrupt, match="cipher 7"):
            async for _ in open_to_all.fetch(ref):
                pass


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


async def test_a_half_written_object_is_written_again(
    subject: Subject, data: bytes, large: bytes
) -> None:
    """A server that died during a put leaves a short object; another process repairs it."""
    for content in (data, large):
        ref = await subject.store.put(ACME, content, media_type=JSON)
        await subject.damage(ref, content[:4])
        await subject.store.put(ACME, content, media_type=JSON)
        assert await subject.store.get(ref) == content
