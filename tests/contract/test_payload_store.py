"""What every payload store promises: in memory, in files and in S3 alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest

from streams.app import open_payloads
from streams.clock import SystemClock
from streams.envelope.model import PayloadRef
from streams.payload.content import key_of
from streams.payload.errors import PayloadCorrupt, PayloadMissing, PayloadUnavailable
from streams.payload.keys import given
from streams.payload.local import LocalPayloadStore
from streams.payload.memory import MemoryPayloadStore
from streams.payload.port import JSON, PayloadStore, Scope
from streams.payload.s3 import S3PayloadStore
from streams.settings import Settings

ACME = Scope("acme", "care")


@dataclass(frozen=True, slots=True)
class Subject:
    """A store, and a way to damage what lies in it."""

    store: PayloadStore
    damage: Callable[[PayloadRef, bytes], None]


@pytest.fixture(params=["memory", "local", pytest.param("s3", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest) -> str | Settings:
    """Which adapter; the servers are started only where they are needed."""
    return request.getfixturevalue("settings") if request.param == "s3" else request.param


@pytest.fixture
async def subject(place: str | Settings, tmp_path: Path) -> AsyncIterator[Subject]:
    if place == "memory":
        memory = MemoryPayloadStore()
        yield Subject(memory, lambda ref, data: memory.objects.update({key_of(ref): data}))
    elif place == "local":
        local = LocalPayloadStore(tmp_path)

        def damage(ref: PayloadRef, data: bytes) -> None:
            (tmp_path / key_of(ref)).write_bytes(data)

        yield Subject(local, damage)
    else:
        assert isinstance(place, Settings)
        async with open_payloads(place) as store:
            yield Subject(store, lambda ref, data: _overwrite(place, key_of(ref), data))


@pytest.fixture
def store(subject: Subject) -> PayloadStore:
    return subject.store


@pytest.fixture
def data() -> bytes:
    """Bytes that no other test has stored."""
    return b"payload " + uuid4().bytes


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
    await asyncio.to_thread(subject.damage, ref, change(data))
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


@pytest.mark.stack
async def test_a_half_written_object_is_written_again(settings: Settings, data: bytes) -> None:
    """A server that died during a put leaves a short object; another process repairs it."""
    async with open_payloads(settings) as first:
        ref = await first.put(ACME, data, media_type=JSON)
    await asyncio.to_thread(_overwrite, settings, key_of(ref), data[:4])
    async with open_payloads(settings) as second:
        await second.put(ACME, data, media_type=JSON)
        assert await second.get(ref) == data


@pytest.mark.stack
async def test_wrong_keys_are_said(settings: Settings, data: bytes) -> None:
    place = settings.payload_store.connection
    async with aiohttp.ClientSession() as session:
        store = S3PayloadStore(
            session,
            base_url=f"{place.endpoint}/{place.bucket}",
            region=place.region,
            keys=given("nobody", "wrong"),
            now=SystemClock().now,
        )
        with pytest.raises(PayloadUnavailable, match="keys"):
            await store.put(ACME, data, media_type=JSON)


async def test_a_store_that_is_down_is_unavailable(data: bytes) -> None:
    async with aiohttp.ClientSession() as session:
        store = S3PayloadStore(
            session,
            base_url="http://127.0.0.1:9/bucket",
            region="us-east-1",
            keys=given("a", "b"),
            now=SystemClock().now,
            pauses_s=(0.0,),
        )
        with pytest.raises(PayloadUnavailable, match="is up"):
            await store.put(ACME, data, media_type=JSON)


def _overwrite(settings: Settings, key: str, data: bytes) -> None:
    """Damage an object from outside, with a client that is not ours."""
    import boto3

    place = settings.payload_store.connection
    assert place.access_key is not None
    assert place.secret_key is not None
    client = boto3.client(
        "s3",
        endpoint_url=place.endpoint,
        region_name=place.region,
        aws_access_key_id=place.access_key.get_secret_value(),
        aws_secret_access_key=place.secret_key.get_secret_value(),
    )
    try:
        client.put_object(Bucket=place.bucket, Key=key, Body=data)
    finally:
        client.close()
