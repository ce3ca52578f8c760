"""Nested rows have nested columns, the same however a stage was cut into frames."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.events.model import Json
from streams.payload.arrow.columns import DEEPEST, MOST_FIELDS, WIDEST
from streams.payload.arrow.rows import MOST_COLUMNS, decode_rows, encode_rows, read_table, rows_of
from streams.payload.arrow.unify import unify
from streams.payload.errors import PayloadCorrupt
from tests.unit.payload.test_rows import exact, values

EARLIER = json.loads((Path(__file__).parent / "rows_with_json_text.json").read_text())
numbers = st.integers(-9, 9) | st.sampled_from([0.5, -1.5, 2.0, 2**53 + 1, 2**64, -0.0])
leaves = st.sampled_from(["x", "y"]) | numbers | st.booleans()


def alike(depth: int = 3) -> st.SearchStrategy[st.SearchStrategy[Json]]:
    """Choose a shape, and draw values that mostly have it: with nulls, lacking keys, conflicts."""
    scalar = st.sampled_from([st.integers(-9, 9), numbers, st.sampled_from("xyz"), leaves, values])
    if not depth:
        return scalar
    inner = alike(depth - 1)
    lists = inner.map(lambda one: st.lists(one, max_size=3))
    objects = st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(
        lambda keys: st.fixed_dictionaries({}, optional=keys)
    )
    return scalar | (lists | objects).flatmap(
        lambda one: st.sampled_from([one, one | st.none(), one | values])
    )


stages = alike().flatmap(
    lambda one: st.lists(
        st.lists(st.fixed_dictionaries({"id": st.integers()}, optional={"v": one}), max_size=4)
        | st.lists(one, max_size=4),
        max_size=4,
    )
)


def schema_of(rows: list[Any]) -> pa.Schema:
    return read_table(encode_rows(rows).data).schema


@given(stages)
def test_nested_rows_come_back_exactly(frames: list[list[Json]]) -> None:
    for rows in frames:
        assert exact(decode_rows(encode_rows(rows).data)) == exact(rows)


@given(stages)
def test_frames_together_are_what_one_frame_of_all_rows_would_be(frames: list[list[Json]]) -> None:
    rows = [row for frame in frames for row in frame]
    whole = unify([read_table(encode_rows(frame).data) for frame in frames])
    assert exact(rows_of(whole)) == exact(rows)
    if rows:
        assert whole.schema.equals(schema_of(rows), check_metadata=True)


def test_objects_are_structs_and_lists_are_lists_as_deep_as_they_go() -> None:
    rows = [
        {"who": {"name": "a", "at": {"zip": 1}}, "visits": [{"cost": 1.5}, {"cost": None}]},
        {"who": None, "visits": []},
    ]
    schema = schema_of(rows)
    assert str(schema.field("who").type) == "struct<name: string, at: struct<zip: int64>>"
    assert str(schema.field("visits").type) == "list<item: struct<cost: double>>"
    assert not any(field.metadata for field in schema)


def test_a_key_that_is_not_there_is_not_null() -> None:
    rows: list[Json] = [{"a": {"x": 1, "n": None}}, {"a": {}}, {"a": {"x": 2, "n": 5}}]
    kind = schema_of(rows).field("a").type
    assert kind.field("x").metadata == {b"noetl.null": b"missing"}
    assert kind.field("n").metadata == {b"noetl.encoding": b"json", b"noetl.null": b"missing"}
    assert decode_rows(encode_rows(rows).data) == rows


def test_whole_numbers_beside_fractions_are_widened_and_stay_whole() -> None:
    rows: list[Json] = [{"x": [1, 2.5]}, {"x": [None, float("inf")]}]
    assert schema_of(rows).field("x").type.value_type == pa.float64()
    assert exact(decode_rows(encode_rows(rows).data)) == exact(rows)
    apart: list[Json] = [{"x": 1}, {"x": 2.5}]
    whole = unify([read_table(encode_rows([row]).data) for row in apart])
    assert whole.schema.field("x").type == pa.float64()
    assert exact(rows_of(whole)) == exact(apart)


@pytest.mark.parametrize("numbers", [[1, 2.0], [1, -0.0], [2**53 + 1, 0.5]], ids=repr)
def test_numbers_that_a_float_would_change_are_text(numbers: list[Json]) -> None:
    assert schema_of(numbers).field(0).metadata == {b"noetl.encoding": b"json"}
    assert exact(decode_rows(encode_rows(numbers).data)) == exact(numbers)


def test_a_conflict_is_text_where_it_is_and_not_above() -> None:
    kind = schema_of([{"a": [{"x": 1, "y": "b"}, {"x": "1", "y": "c"}]}]).field("a").type
    assert str(kind) == "list<item: struct<x: string, y: string>>"
    assert kind.value_type.field("x").metadata == {b"noetl.encoding": b"json"}
    assert kind.value_type.field("y").metadata is None


def test_a_struct_gains_the_fields_of_later_frames() -> None:
    frames: list[list[Json]] = [[{"a": {"x": 1}}], [{"a": {"x": 2, "y": "b"}}], [{}], [{"a": None}]]
    whole = unify([read_table(encode_rows(rows).data) for rows in frames[:3]])
    assert str(whole.schema.field("a").type) == "struct<x: int64, y: string>"
    assert rows_of(whole) == [row for rows in frames[:3] for row in rows]
    whole = unify([read_table(encode_rows(rows).data) for rows in frames])
    assert rows_of(whole) == [row for rows in frames for row in rows]


def test_frames_that_agree_on_nested_columns_are_not_copied() -> None:
    tables = [read_table(encode_rows([{"a": {"x": n}, "b": n or "text"}]).data) for n in range(2)]
    whole = unify(tables)
    places = [t.column("a").chunk(0).field(0).buffers()[1].address for t in (tables[0], whole)]
    assert places[0] == places[1]


@pytest.mark.parametrize(
    "value",
    [
        {f"key{n}": n for n in range(WIDEST + 1)},
        {f"k{n}": {f"k{m}": m for m in range(WIDEST)} for n in range(MOST_FIELDS // WIDEST + 1)},
        {},
        [{}],
        ["a", 1],
    ],
    ids=["keys that are data", "too many fields", "no keys", "a list of nothing", "mixed"],
)
def test_what_has_no_sensible_type_is_text(value: Json) -> None:
    field = schema_of([{"a": value}]).field("a")
    assert (field.type, field.metadata) == (pa.string(), {b"noetl.encoding": b"json"})
    assert decode_rows(encode_rows([{"a": value}]).data) == [{"a": value}]


def test_rows_of_very_many_keys_are_one_column() -> None:
    rows: list[Json] = [{f"key{n}_{m}": m for m in range(2)} for n in range(MOST_COLUMNS)]
    assert schema_of(rows).names == ["value"]
    assert decode_rows(encode_rows(rows).data) == rows
    halves = rows[: MOST_COLUMNS // 2], rows[MOST_COLUMNS // 2 :]
    whole = unify([read_table(encode_rows(half).data) for half in halves])
    assert (whole.schema.names, rows_of(whole)) == (["value"], rows)


def test_what_is_deeper_than_structs_go_is_text_from_there_on() -> None:
    value: Json = 1
    for _ in range(100):
        value = {"a": value}
    kind = schema_of([value]).field("a").type
    for _ in range(DEEPEST):
        field = kind.field("a")
        kind = field.type
    assert field.metadata == {b"noetl.encoding": b"json"}
    assert decode_rows(encode_rows([value]).data) == [value]


def test_decimals_and_times_have_types_inside_others_too() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    rows: list[Any] = [{"a": {"at": at, "sum": Decimal("1.10")}}, {"a": {"at": at, "sum": None}}]
    kind = schema_of(rows).field("a").type
    assert kind.field("at").type == pa.timestamp("us", tz="UTC")
    assert kind.field("sum").type == pa.decimal128(3, 2)
    time = "2026-03-01T00:00:00+00:00"
    assert decode_rows(encode_rows(rows).data) == [
        {"a": {"at": time, "sum": "1.10"}},
        {"a": {"at": time, "sum": None}},
    ]
    more: list[Any] = [{"a": {"sum": Decimal("12345.678")}}]
    whole = unify([read_table(encode_rows(frame).data) for frame in (rows, more)])
    assert whole.schema.field("a").type.field("sum").type == pa.decimal128(8, 3)


@pytest.mark.parametrize("value", ["\ud800", {"a": "\ud800"}, {"\ud800": 1}, ["\ud800"]])
def test_half_a_character_comes_back(value: Json) -> None:
    assert decode_rows(encode_rows([{"v": value}]).data) == [{"v": value}]


def test_marks_inside_a_type_are_part_of_the_digest() -> None:
    inner: list[Any] = [{"x": "1"}, {"x": None}, {"y": "1"}, {"x": 1}]
    digests = {encode_rows([{"a": one}, {"a": {"x": "2"}}]).schema_digest for one in inner}
    assert len(digests) == 3


def test_frames_recorded_with_json_text_are_still_read_and_join_new_ones() -> None:
    data = base64.b64decode(EARLIER["arrow"])
    assert exact(decode_rows(data)) == exact(EARLIER["rows"])
    newer: list[Json] = [{"id": 3, "who": {"name": "b"}, "tags": ["x"], "n": 2}]
    whole = unify([read_table(data), read_table(encode_rows(newer).data)])
    assert exact(rows_of(whole)) == exact([*EARLIER["rows"], *newer])


def test_flat_rows_have_the_schema_digest_they_always_had() -> None:
    rows: list[Json] = [{"id": 1, "name": "a", "x": 0.5, "ok": True}, {"id": 2, "ok": None}]
    assert encode_rows(rows).schema_digest == EARLIER["flat_schema_digest"]


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_nested_streams_give_rows_or_a_named_error(damage: list[tuple[int, int]]) -> None:
    rows: list[Json] = [
        {"a": {"n": [n, None]}, "b": [{"c": n}] if n % 2 else None} for n in range(9)
    ]
    data = bytearray(encode_rows(rows).data)
    for place, byte in damage:
        data[place % len(data)] = byte
    with suppress(PayloadCorrupt):
        decode_rows(bytes(data))


def test_maps_of_other_writers_are_objects() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int8()))
    table = pa.table({"m": pa.array([[("a", [1]), ("b", None)], None, []], kind)})
    assert rows_of(table) == [{"m": {"a": [1], "b": None}}, {"m": None}, {"m": {}}]
    assert rows_of(table.slice(1)) == [{"m": None}, {"m": {}}]
    with pytest.raises(PayloadCorrupt, match="keys"):
        rows_of(pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8()))}))
