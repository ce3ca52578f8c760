from __future__ import annotations

from typing import Any

from streams.events.model import PayloadRef
from streams.payload.arrow.rows import encode_rows
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON, Scope
from streams.worker.attempt.input import Documents

SCOPE = Scope("acme", "care")


class CountingStore(MemoryPayloadStore):
    reads = 0

    async def get(self, ref: PayloadRef) -> bytes:
        self.reads += 1
        return await super().get(ref)


async def stored(store: MemoryPayloadStore, *texts: str) -> list[PayloadRef]:
    return [await store.put(SCOPE, f'"{text}"'.encode(), media_type=JSON) for text in texts]


async def test_a_document_is_fetched_once() -> None:
    store = CountingStore()
    (ref,) = await stored(store, "a")
    documents = Documents(store)
    assert [await documents.read(ref), await documents.read(ref)] == ["a", "a"]
    assert store.reads == 1


async def test_the_documents_used_longest_ago_make_room() -> None:
    store = CountingStore()
    refs = await stored(store, "a" * 10, "b" * 10, "c" * 10)
    documents = Documents(store, cache_bytes=30)
    for ref in (refs[0], refs[1], refs[0], refs[2], refs[0]):
        await documents.read(ref)
    assert store.reads == 3
    await documents.read(refs[1])
    assert store.reads == 4


async def test_a_document_larger_than_the_cache_is_not_kept() -> None:
    store = CountingStore()
    (ref,) = await stored(store, "a" * 100)
    documents = Documents(store, cache_bytes=30)
    await documents.read(ref)
    await documents.read(ref)
    assert store.reads == 2


async def test_rows_in_arrow_are_read_as_rows() -> None:
    store = MemoryPayloadStore()
    rows: list[Any] = [{"a": 1}, {"a": "x"}]
    ref = await store.put(SCOPE, encode_rows(rows).data, media_type=ARROW)
    assert await Documents(store).read(ref) == rows
