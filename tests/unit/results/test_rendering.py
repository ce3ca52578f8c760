"""Rows as JSON in pieces: the same value that a reader in memory gets."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from streams.payload.arrow.rows import encode_rows
from streams.payload.errors import PayloadCorrupt
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON, Scope
from streams.results.reading import MANIFEST, RowsPart, encode_manifest, read_value
from streams.results.reference import ResultRef
from streams.results.rendering import WHOLE_BYTES, TooLargeForJson, as_json

ACME = Scope("acme", "care")


async def rendered(store: MemoryPayloadStore, ref: Any) -> Any:
    return json.loads(b"".join([piece async for piece in as_json(store, ref)]))


async def arrow(store: MemoryPayloadStore, rows: list[Any]) -> Any:
    return await store.put(ACME, encode_rows(rows).data, media_type=ARROW)


@pytest.mark.parametrize(
    "rows",
    [[], [None], [1], [{"n": n, "text": "é\x00"} for n in range(1203)], [{"n": 2**70}, {}]],
)
async def test_rows_are_the_same_in_pieces(rows: list[Any]) -> None:
    store = MemoryPayloadStore()
    ref = await arrow(store, rows)
    assert await rendered(store, ref) == rows
    manifest = encode_manifest([RowsPart(2, None), RowsPart(len(rows), ref), RowsPart(1, None)])
    whole = await store.put(ACME, manifest, media_type=MANIFEST)
    assert (
        await rendered(store, whole) == await read_value(store, whole) == [None] * 2 + rows + [None]
    )


async def test_rows_that_are_references_are_followed() -> None:
    store = MemoryPayloadStore()
    inner = await store.put(ACME, b'{"page": [1, 2]}', media_type=JSON)
    text = await store.put(ACME, b"plain", media_type="text/plain")
    refs = [
        ResultRef.to_payload("noetl://x", one, store="object", scope="permanent").to_json()
        for one in (inner, text)
    ]
    rows = await arrow(store, [{"n": 1}, refs[0], {"n": 2}, refs[1]])
    listed = await store.put(ACME, b"[1, 2]", media_type=JSON)
    parts = [RowsPart(4, rows), RowsPart(2, listed)]
    manifest = await store.put(ACME, encode_manifest(parts), media_type=MANIFEST)
    found = await rendered(store, manifest)
    assert found == [{"n": 1}, {"page": [1, 2]}, {"n": 2}, "plain", 1, 2]
    assert found == await read_value(store, manifest)


async def test_json_may_name_its_charset_and_bytes_that_are_no_text_are_base64() -> None:
    store = MemoryPayloadStore()
    json_ref = await store.put(ACME, b'{"a": 1}', media_type="application/json; charset=utf-8")
    scan = await store.put(ACME, b"\x89PNG\xff", media_type="image/png")
    for ref, value in ((json_ref, {"a": 1}), (scan, "iVBOR/8=")):
        assert await rendered(store, ref) == await read_value(store, ref) == value


async def test_a_part_that_is_damaged_or_no_rows_is_refused() -> None:
    store = MemoryPayloadStore()
    for data in (b'{"not": "rows"}', orjson.dumps("text")):
        part = await store.put(ACME, data, media_type=JSON)
        manifest = await store.put(ACME, encode_manifest([RowsPart(1, part)]), media_type=MANIFEST)
        with pytest.raises(PayloadCorrupt):
            await rendered(store, manifest)


async def test_one_payload_too_large_to_be_at_hand_is_refused() -> None:
    store = MemoryPayloadStore()
    ref = await store.put(ACME, bytes(WHOLE_BYTES + 1), media_type=ARROW)
    with pytest.raises(TooLargeForJson, match="fetch the payload itself"):
        await rendered(store, ref)
