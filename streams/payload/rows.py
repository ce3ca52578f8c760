"""Rows of JSON as one Arrow IPC stream, and back, exactly.

Rows that are all objects become one column per key, in the order the keys first appear;
other rows become the single column `value`. A column is bool, int64, float64 or utf8 when
all its values are of that one kind. Any other column (nested values, mixed kinds, integers
beyond 64 bits) is JSON text, one text a row, and says so in its field's metadata: what a later
frame brings in another shape changes no column's meaning (`unify` joins such frames).

JSON has no decimals and no times. Rows that hold them all the same become decimals with
precision and scale, dates, and timestamps of microseconds in UTC; they come back as text, as
every tool writes them. A time without a zone is not given one: it is text.

A null of Arrow means JSON's null, unless the field says `noetl.null: missing`: then the row
does not have the key at all. NaN and the infinities are not JSON: only a float64 column keeps
them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

import orjson
import pyarrow as pa

from streams.envelope.model import Json
from streams.payload.errors import PayloadCorrupt
from streams.payload.times import Unfit, as_json, special_column

MISSING: Any = object()
ROWS, ENCODING, NULL = b"noetl.rows", b"noetl.encoding", b"noetl.null"
_TYPES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}
_SPECIAL = frozenset({Decimal, datetime, date})
_TEXT = pa.string()
_PLAIN = frozenset({*_TYPES.values(), pa.int8(), pa.int16(), pa.int32(), pa.large_string()})


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """An Arrow stream, with what its payload reference says about it."""

    data: bytes
    row_count: int
    schema_digest: str


def encode_rows(rows: Sequence[Json]) -> EncodedRows:
    """Return `rows` as one Arrow IPC stream; the same rows give the same bytes.

    Raises:
        TypeError: a value is not JSON.
    """
    objects: Sequence[Any] = rows
    if names := _names(rows):
        shape = b"objects"
        columns = [[row.get(name, MISSING) for row in objects] for name in names]
    else:
        shape, names, columns = b"values", ["value"], [list(rows)]
    arrays, fields = [], []
    for name, values in zip(names, columns, strict=True):
        array, marks = _column(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=marks))
    return _written(pa.schema(fields, metadata={ROWS: shape}), arrays, len(rows))


def decode_rows(data: bytes | pa.Buffer) -> list[Json]:
    """Return the rows of a stream that `encode_rows`, or any Arrow writer, made.

    Raises:
        PayloadCorrupt: it is no Arrow stream.
    """
    return rows_of(read_table(data))


def read_table(data: bytes | pa.Buffer, what: str = "rows") -> pa.Table:
    """Return an Arrow stream as a table that uses the bytes where they are.

    Raises:
        PayloadCorrupt: it is no Arrow stream.
    """
    try:
        table = pa.ipc.open_stream(data).read_all()
        table.validate()
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        raise PayloadCorrupt(what, f"not an Arrow stream: {error}") from error
    return table


def rows_of(table: pa.Table) -> list[Json]:
    """Return the rows of a table as JSON.

    Every offset is checked first: anybody may have written the stream, and Arrow would follow
    a wrong one out of its memory.

    Raises:
        PayloadCorrupt: its values are not what its columns say.
    """
    try:
        table.validate(full=True)
        return _rows_of(table)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise PayloadCorrupt("rows", f"an Arrow stream with wrong values: {error}") from error


def _rows_of(table: pa.Table) -> list[Json]:
    columns = [
        column_values(column, field)
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    if is_values(table.schema):
        return columns[0]
    if not columns:
        return [{} for _ in range(table.num_rows)]
    names = table.schema.names
    rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if any(means_missing(field) for field in table.schema):
        rows = [{k: v for k, v in row.items() if v is not MISSING} for row in rows]
    return rows


def is_values(schema: pa.Schema) -> bool:
    """Say whether the table holds bare values, not objects."""
    return bool((schema.metadata or {}).get(ROWS) == b"values")


def means_missing(field: pa.Field) -> bool:
    """Say whether a null of the column means that the row does not have the key."""
    return bool((field.metadata or {}).get(NULL) == b"missing")


def _names(rows: Sequence[Json]) -> list[str]:
    """Return the keys of rows that are all objects; none where they are not."""
    names: dict[str, None] = {}
    for row in rows:
        if type(row) is not dict:
            return []
        names.update(dict.fromkeys(row))
    return list(names)


def _column(values: list[Any]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """Choose a column's type; return it with the marks its field needs."""
    kinds = set(map(type, values))
    missing = object in kinds
    kinds.discard(object)
    nulls = type(None) in kinds
    kinds.discard(type(None))
    if len(kinds) <= 1 and not (missing and nulls):
        kind = next(iter(kinds), str)
        if kind in _TYPES or kind in _SPECIAL:
            plain = [None if v is MISSING else v for v in values] if missing else values
            try:
                array = special_column(plain) if kind in _SPECIAL else pa.array(plain, _TYPES[kind])
            except (OverflowError, Unfit):
                pass  # an integer beyond 64 bits, a time without a zone: as text
            else:
                return array, {NULL: b"missing"} if missing else None
    return as_text(values, missing)


def as_text(values: list[Any], missing: bool) -> tuple[pa.Array, dict[bytes, bytes]]:
    """Return values as JSON text, with the marks that say so."""
    marks = {ENCODING: b"json"}
    if missing:
        marks[NULL] = b"missing"
    try:
        texts = [None if v is MISSING else _dumped(v) for v in values]
    except orjson.JSONEncodeError:
        # `wide` warns readers: most JSON parsers would read such integers as floats.
        marks[ENCODING] = b"json.wide"
        texts = [None if v is MISSING else _wide(v) for v in values]
    return pa.array(texts, _TEXT), marks


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=as_json, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()


def _wide(value: Json) -> str:
    """Write a value with integers of any size."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    if json.loads(text) != value:  # the standard writer makes keys into text, tuples into lists
        raise TypeError(f"not JSON: {value!r:.200}")
    return text


def column_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Return a column's values as JSON; MISSING where the row does not have it."""
    marks = field.metadata or {}
    encoding = marks.get(ENCODING)
    absent = MISSING if marks.get(NULL) == b"missing" else None
    if encoding is not None:
        read = json.loads if encoding == b"json.wide" else orjson.loads
        return [absent if text is None else read(text) for text in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    if field.type not in _PLAIN:
        values = [as_json(value) for value in values]
    if absent is MISSING:
        return [MISSING if value is None else value for value in values]
    return values


def _written(schema: pa.Schema, arrays: list[pa.Array], row_count: int) -> EncodedRows:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return EncodedRows(sink.getvalue().to_pybytes(), row_count, _digest(schema))


def _digest(schema: pa.Schema) -> str:
    """Hash what the schema says, not how this version of Arrow writes it."""
    said = [
        [field.name, str(field.type), sorted((k.decode(), v.decode()) for k, v in marks.items())]
        for field in schema
        for marks in (field.metadata or {},)
    ]
    return sha256(orjson.dumps([said, schema.metadata[ROWS].decode()])).hexdigest()
