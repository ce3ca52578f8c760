"""What every place of objects promises the collector, and what a store out of reach says."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from pydantic import SecretStr

from streams.app import open_payloads
from streams.payload.content import describe, key_of, trash_key
from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.blocks import BLOCK_BYTES
from streams.payload.objects.buckets import s3_bucket
from streams.payload.objects.cloud import CloudObjects
from streams.payload.objects.port import Shelves
from streams.payload.port import JSON, Scope
from streams.payload.store import ContentStore
from streams.settings import Settings
from streams.settings.payload_store import PayloadConnection
from tests.support.payload.stores import ACME, Subject, pieces


async def test_what_lies_in_the_trash_is_still_read(subject: Subject, large: bytes) -> None:
    ref = await subject.store.put(ACME, large, media_type=JSON)
    await subject.shelves.move(key_of(ref), trash_key(key_of(ref)))
    assert await subject.shelves.stat(key_of(ref)) is None
    assert await subject.store.exists(ref)
    assert await subject.store.get(ref) == large
    assert b"".join([piece async for piece in subject.store.fetch(ref)]) == large
    await subject.store.delete(ref)
    assert not await subject.store.exists(ref)


async def test_an_object_of_several_ranges_is_read_and_moved(
    place: str | Settings, shelves: Shelves
) -> None:
    if isinstance(place, Settings) and place.payload_store.backend == "gcs":
        pytest.skip("rclone answers a range as if it were all, which Google would not")
    data, key = os.urandom(1 << 20) * 20, f"acme/ranges-{uuid4().hex}/sha256/x"
    await shelves.write(key, data)
    assert await shelves.read(key, at_most=len(data)) == data
    await shelves.move(key, trash_key(key))
    found = bytearray()
    async for piece in shelves.stream(trash_key(key)):
        found += piece
    assert found == data
    await shelves.remove(trash_key(key))


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
    # Places that count in seconds must show a difference, and clocks that tick.
    await asyncio.sleep(0.05 if before.modified_at.microsecond else 1.1)
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
            await store.store(ACME, pieces(large, BLOCK_BYTES), media_type=JSON)


@pytest.mark.stack
async def test_a_missing_bucket_is_not_a_missing_payload(settings: Settings, data: bytes) -> None:
    connection = settings.payload_store.connection.model_copy(update={"bucket": "nowhere"})
    chosen = settings.payload_store.model_copy(update={"connection": connection})
    async with open_payloads(settings.model_copy(update={"payload_store": chosen})) as store:
        ref = describe(ACME, data, media_type=JSON)
        with pytest.raises(PayloadUnavailable, match="bucket"):
            await store.get(ref)


async def test_a_store_that_is_down_is_unavailable(data: bytes) -> None:
    place = PayloadConnection(
        endpoint="http://127.0.0.1:9",
        bucket="bucket",
        access_key=SecretStr("a"),
        secret_key=SecretStr("b"),
    )
    with pytest.raises(PayloadUnavailable, match="is up"):
        await ContentStore(CloudObjects(s3_bucket(place))).put(ACME, data, media_type=JSON)
