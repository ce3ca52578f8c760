"""Manifests that somebody forged, and payloads that are not what they say."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.errors import StreamsError
from streams.events.model import PayloadRef
from streams.payload.content import reference_json
from streams.payload.errors import PayloadCorrupt, PayloadForeign
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import JSON, Scope
from streams.results.reading import (
    MANIFEST,
    MOST_ROWS,
    RowsPart,
    TooManyRows,
    encode_manifest,
    read_value,
)
from streams.results.reference import ResultRef, result_uri, results_of
from streams.results.rendering import as_json

ACME, OTHER = Scope("acme", "care"), Scope("other", "care")


async def manifest(store: MemoryPayloadStore, *parts: Any) -> PayloadRef:
    data = orjson.dumps({"parts": parts})
    return await store.put(ACME, data, media_type=MANIFEST)


async def refused(store: MemoryPayloadStore, ref: PayloadRef, kind: type[StreamsError]) -> None:
    with pytest.raises(kind):
        await read_value(store, ref)
    with pytest.raises(kind):
        [piece async for piece in as_json(store, ref)]


async def test_a_manifest_reaches_no_payload_of_another_tenant() -> None:
    store = MemoryPayloadStore()
    theirs = await store.put(OTHER, b'["secret"]', media_type=JSON)
    forged = await manifest(store, {"rows": 1, "ref": reference_json(theirs)})
    await refused(store, forged, PayloadForeign)


async def test_a_manifest_is_no_part_of_a_manifest() -> None:
    store = MemoryPayloadStore()
    inner = await manifest(store, {"rows": 1, "ref": None})
    twice = {"rows": 1, "ref": reference_json(inner)}
    await refused(store, await manifest(store, twice, twice), PayloadCorrupt)


async def test_rows_that_are_only_claimed_take_no_memory() -> None:
    store = MemoryPayloadStore()
    await refused(store, await manifest(store, {"rows": 10**15, "ref": None}), TooManyRows)
    many = await store.put(ACME, b"[" + b"0," * 999 + b"0]", media_type=JSON)
    parts = [{"rows": 0, "ref": reference_json(many)}] * (MOST_ROWS // 1000 + 1)
    forged = await manifest(store, *parts)
    with pytest.raises(TooManyRows):
        await read_value(store, forged)


@pytest.mark.parametrize(
    "part",
    [
        {"rows": "1", "ref": None},
        {"rows": -1, "ref": None},
        {"rows": True, "ref": None},
        {"rows": 1},
        {"rows": 1, "ref": "noetl://x"},
        {"rows": 1, "ref": {"uri": 5, "sha256": 5, "media_type": 5, "byte_length": 5}},
        {"rows": 1, "ref": {"uri": "x", "sha256": "y", "media_type": JSON, "byte_length": "1"}},
        [],
        None,
    ],
)
async def test_what_is_no_part_is_named(part: Any) -> None:
    store = MemoryPayloadStore()
    await refused(store, await manifest(store, part), PayloadCorrupt)


async def test_json_that_is_none_is_named() -> None:
    store = MemoryPayloadStore()
    ref = await store.put(ACME, b"{half", media_type=JSON)
    with pytest.raises(PayloadCorrupt, match="not JSON"):
        await read_value(store, ref)


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "result_ref", "meta": {}},
        {"kind": "result_ref", "meta": {"bytes": 5, "sha256": "../x"}},
        {"kind": "result_ref", "meta": {"bytes": 5, "sha256": "0" * 64, "content_type": MANIFEST}},
        {"kind": "result_ref", "meta": None},
    ],
)
async def test_a_row_that_only_looks_like_a_reference_stays_as_it_is(row: Any) -> None:
    store = MemoryPayloadStore()
    rows = await store.put(ACME, orjson.dumps([row]), media_type=JSON)
    whole = await manifest(store, {"rows": 1, "ref": reference_json(rows)})
    assert await read_value(store, whole) == [row]
    text = b"".join([piece async for piece in as_json(store, whole)])
    assert orjson.loads(text) == [row]


async def test_a_reference_of_somebody_elses_result_is_a_value_like_any_other() -> None:
    store = MemoryPayloadStore()
    page = await store.put(ACME, b'"a page"', media_type=JSON)
    names = [result_uri(7, "load", "page", 1), result_uri(7, "loader", "page", 1)]
    names += [result_uri(8, "load", "page", 1)]
    refs = [ResultRef.to_payload(one, page, store="s3", scope="execution") for one in names]
    given = [ref.to_json() for ref in refs]
    rows = await store.put(ACME, orjson.dumps(given), media_type=JSON)
    manifest = encode_manifest([RowsPart(3, rows, results_of(7, "load"))])
    whole = await store.put(ACME, manifest, media_type=MANIFEST)
    text = b"".join([piece async for piece in as_json(store, whole)])
    assert await read_value(store, whole) == orjson.loads(text) == ["a page", *given[1:]]
