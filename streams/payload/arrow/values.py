"""Conversion of Arrow columns back to JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise

import orjson
import pyarrow as pa

from streams.payload.arrow.columns import ENCODING, MISSING, NULL, NUMBER
from streams.payload.arrow.times import as_json

_PLAIN = frozenset(
    {
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64()),
        *(pa.string(), pa.large_string()),
    }
)
Leaf = Callable[[object], object]


def column_values(
    column: pa.ChunkedArray | pa.Array, field: pa.Field, leaf: Leaf = as_json
) -> Sequence[object]:
    """Return a column's values; MISSING where a row does not have the key.

    `leaf` converts values that are not JSON: decimals, times, and types of other writers.

    Raises:
        TypeError, ValueError: a value does not match its field.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column_values(column.chunk(0), field, leaf)
        return [one for chunk in column.chunks for one in column_values(chunk, field, leaf)]
    marks = field.metadata or {}
    absent = MISSING if marks.get(NULL) == b"missing" else None
    if (encoding := marks.get(ENCODING)) is not None:
        read = json.loads if encoding == b"json.wide" else orjson.loads
        return [absent if text is None else read(text) for text in column.to_pylist()]
    values = _present(column, field.type, NUMBER in marks, leaf)
    if absent is MISSING and column.null_count:
        return [MISSING if value is None else value for value in values]
    return values


def unread(value: object) -> object:
    """Return decimals, dates and times unchanged, to be written to a column again."""
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else as_json(value)
    return value if isinstance(value, Decimal | date) else as_json(value)


def _present(array: pa.Array, kind: pa.DataType, has_whole: bool, leaf: Leaf) -> Sequence[object]:
    """Return the values of a typed column, None where it is null."""
    if pa.types.is_struct(kind):
        return _objects(array, kind, leaf)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array, kind, leaf)
    if pa.types.is_map(kind):
        return _maps(array, kind, leaf)
    if kind not in _PLAIN:
        return [leaf(value) for value in array.to_pylist()]
    if has_whole:
        numbers: list[float | None] = array.to_pylist()
        return [int(v) if v is not None and v.is_integer() else v for v in numbers]
    values: list[object] = array.to_pylist()
    return values


def _objects(array: pa.StructArray, kind: pa.StructType, leaf: Leaf) -> Sequence[object]:
    fields = [kind.field(n) for n in range(kind.num_fields)]
    columns = [column_values(c, f, leaf) for c, f in zip(array.flatten(), fields, strict=True)]
    names = [field.name for field in fields]
    rows = joined(names, columns, len(array))
    if not array.null_count:
        return rows
    there = array.is_valid().to_pylist()
    return [row if is_there else None for row, is_there in zip(rows, there, strict=True)]


def joined(
    names: list[str], columns: Sequence[Sequence[object]], count: int
) -> list[dict[str, object]]:
    """Return columns as objects, each without the keys that it does not have."""
    if not columns:
        return [{} for _ in range(count)]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if any(value is MISSING for column in columns for value in column):
        rows = [{k: v for k, v in row.items() if v is not MISSING} for row in rows]
    return rows


def _lists(array: pa.ListArray, kind: pa.ListType, leaf: Leaf) -> Sequence[object]:
    begin, places = _places(array)
    items = column_values(array.values.slice(begin, places[-1]), kind.value_field, leaf)
    return _each(array, places, lambda first, end: items[first:end])


def _maps(array: pa.MapArray, kind: pa.MapType, leaf: Leaf) -> Sequence[object]:
    begin, places = _places(array)
    keys = array.keys.slice(begin, places[-1]).to_pylist()
    if any(type(key) is not str for key in keys):
        raise TypeError("a map whose keys are not text")
    items = column_values(array.items.slice(begin, places[-1]), kind.item_field, leaf)
    return _each(
        array,
        places,
        lambda first, end: dict(zip(keys[first:end], items[first:end], strict=True)),
    )


def _places(array: pa.ListArray | pa.MapArray) -> tuple[int, list[int]]:
    """Return where the items of an array begin in its child, and its offsets from there."""
    offsets = array.offsets.to_pylist()
    return offsets[0], [offset - offsets[0] for offset in offsets]


def _each(
    array: pa.Array, places: list[int], cut: Callable[[int, int], object]
) -> Sequence[object]:
    made = [cut(first, end) for first, end in pairwise(places)]
    if not array.null_count:
        return made
    there = array.is_valid().to_pylist()
    return [one if is_there else None for one, is_there in zip(made, there, strict=True)]
