"""A stage is read as one table, whatever its frames' schemas were."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest

from streams.events.model import PayloadRef
from streams.payload.arrow.rows import decode_rows, encode_rows, rows_of
from streams.payload.errors import PayloadCorrupt
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON, Scope
from streams.results.reading import MANIFEST, RowsPart, encode_manifest, read_value
from streams.results.reference import ResultRef, result_uri
from streams.results.stage_rows import TooLargeToJoin, read_stage, written

SCOPE = Scope("acme", "care")


async def stage(store: MemoryPayloadStore, *frames: list[Any]) -> PayloadRef:
    """Store frames and their manifest; a frame that gave nothing has no payload."""
    parts = []
    for rows in frames:
        encoded, is_nothing = encode_rows(rows), all(row is None for row in rows)
        ref = await store.put(SCOPE, encoded.data, media_type=ARROW)
        parts.append(RowsPart(len(rows), None if is_nothing else ref))
    return await store.put(SCOPE, encode_manifest(parts), media_type=MANIFEST)


async def test_frames_whose_rows_changed_are_one_table() -> None:
    store = MemoryPayloadStore()
    frames: list[list[Any]] = [
        [{"id": 1, "who": {"name": "a"}, "cost": 1}],
        [{"id": 2, "who": {"name": "b", "age": 7}, "cost": 1.5}],
        [{"id": 3}],
    ]
    ref = await stage(store, *frames)
    table = await read_stage(store, ref)
    assert str(table.schema.field("who").type) == "struct<name: string, age: int64>"
    assert table.schema.field("cost").type == pa.float64()
    assert rows_of(table) == await read_value(store, ref) == [row for f in frames for row in f]
    assert decode_rows(written(table)) == rows_of(table)


async def test_rows_that_failed_are_null() -> None:
    store = MemoryPayloadStore()
    ref = await stage(store, [{"id": 1}, None], [None, None], [{"id": 2}])
    table = await read_stage(store, ref)
    assert table.schema.field("value").type == pa.struct([("id", pa.int64())])
    assert rows_of(table) == await read_value(store, ref)


@pytest.mark.parametrize("beside", [[], [None], ["text"]], ids=repr)
async def test_rows_that_are_references_are_followed(beside: list[Any]) -> None:
    store = MemoryPayloadStore()
    payload = await store.put(SCOPE, orjson.dumps({"big": True}), media_type=JSON)
    kept = ResultRef.to_payload(
        result_uri(1, "load", "page", 2), payload, store="kv", scope="permanent"
    ).to_json()
    ref = await stage(store, [kept, *beside], [{"big": False}])
    assert rows_of(await read_stage(store, ref)) == [{"big": True}, *beside, {"big": False}]


async def test_a_stage_larger_than_the_room_is_refused_before_it_is_read() -> None:
    store = MemoryPayloadStore()
    ref = await stage(store, [{"id": 1}], [{"id": 2}])
    with pytest.raises(TooLargeToJoin, match="request JSON"):
        await read_stage(store, ref, most=500)


async def test_what_holds_no_rows_is_said_so() -> None:
    store = MemoryPayloadStore()
    with pytest.raises(PayloadCorrupt, match="no rows"):
        await read_stage(store, await store.put(SCOPE, b"{}", media_type=JSON))
