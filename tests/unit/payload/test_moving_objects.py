"""Reading a payload while the collector moves its object."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from streams.payload.content import key_of, trash_key
from streams.payload.errors import PayloadMissing
from streams.payload.objects.memory import MemoryObjects
from streams.payload.objects.port import Stat
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore

ACME = Scope("acme", "care")


class Restored(MemoryObjects):
    """The collector brings an object back just when a reader has looked for it in its place."""

    async def read(self, key: str, *, at_most: int) -> bytes:
        try:
            return await super().read(key, at_most=at_most)
        finally:
            self._bring_back(key)

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        try:
            yield self._found(key)
        finally:
            self._bring_back(key)

    async def stat(self, key: str) -> Stat | None:
        found = await super().stat(key)
        self._bring_back(key)
        return found

    def _bring_back(self, key: str) -> None:
        if (data := self.objects.pop(trash_key(key), None)) is not None:
            self.objects[key] = data


@pytest.fixture
def objects() -> Restored:
    return Restored()


async def test_a_payload_is_found_while_it_is_brought_back(objects: Restored) -> None:
    store = ContentStore(objects, known_s=0)
    ref = await store.put(ACME, b"here", media_type=JSON)

    def to_the_trash() -> None:
        objects.objects[trash_key(key_of(ref))] = objects.objects.pop(key_of(ref))

    to_the_trash()
    assert await store.get(ref) == b"here"
    to_the_trash()
    assert b"".join([piece async for piece in store.fetch(ref)]) == b"here"
    to_the_trash()
    assert await store.exists(ref)
    await store.delete(ref)
    assert not await store.exists(ref)
    with pytest.raises(PayloadMissing):
        await store.get(ref)
    with pytest.raises(PayloadMissing):
        [piece async for piece in store.fetch(ref)]
