"""What every payload store promises: bytes come back as they were put, once, in their scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from uuid import uuid4

import pytest

from streams.events.locator import BadLocator
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.port import JSON, PayloadStore, Scope
from tests.support.payload.stores import ACME, Subject, pieces


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


async def test_a_name_that_is_too_long_for_a_folder_is_refused(
    store: PayloadStore, data: bytes
) -> None:
    """Not as a store that is down: asking again would not help."""
    with pytest.raises(BadLocator, match="at most 255"):
        await store.put(Scope("acme", "病" * 29), data, media_type=JSON)
    fits = await store.put(Scope("acme", "病" * 28), data, media_type=JSON)
    assert await store.get(fits) == data
    await store.delete(fits)


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
    ref = await store.store(ACME, pieces(large, 700_001), media_type=JSON, row_count=3)
    assert (ref.byte_length, ref.row_count) == (len(large), 3)
    assert b"".join([piece async for piece in store.fetch(ref)]) == large
    assert await store.get(ref) == large


async def test_it_does_not_matter_whether_bytes_were_put_or_streamed(
    store: PayloadStore, data: bytes, large: bytes
) -> None:
    for content in (b"", data, large):
        streamed = await store.store(ACME, pieces(content, 300_000), media_type=JSON)
        assert await store.put(ACME, content, media_type=JSON) == streamed
        assert b"".join([piece async for piece in store.fetch(streamed)]) == content


async def test_a_reader_may_stop_early(store: PayloadStore, large: bytes) -> None:
    ref = await store.put(ACME, large, media_type=JSON)
    async with aclosing(store.fetch(ref)) as pieces:  # type: ignore[type-var]
        assert large.startswith(await anext(pieces))
