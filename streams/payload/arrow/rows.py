"""Rows of JSON as one Arrow IPC stream, and back, exactly.

Rows that are all objects become one column per key, in the order the keys first appear;
other rows, and objects of more than a thousand keys together, become the single column
`value`. Columns are typed by `columns`: scalars, structs, lists, maps; other values are JSON text,
marked in the field's metadata. A later frame of another shape does not change a column's meaning
(`unify` joins such frames).

JSON has no decimals and no times. Rows that hold them all the same become decimals with
precision and scale, dates, and timestamps of microseconds in UTC; they come back as text, as
every tool writes them. A time without a zone is not given one: it is text.

A null of Arrow means JSON's null, unless the field says `noetl.null: missing`: then the object
does not have the key at all. NaN and the infinities are not JSON: only a float64 column keeps
them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import orjson
import pyarrow as pa

from streams.events.model import Json
from streams.payload.arrow.bounds import Grows, check_objects, check_table, unpacked
from streams.payload.arrow.columns import NULL, column_of, keyed
from streams.payload.arrow.times import as_json
from streams.payload.arrow.values import Leaf, column_values, joined
from streams.payload.errors import PayloadBomb, PayloadCorrupt

ROWS = b"noetl.rows"
MOST_COLUMNS = 1000
# A decimal out of range, an unknown zone, text that is not JSON or nested too deep.
_BAD_VALUES = (
    *(pa.ArrowException, ValueError, TypeError, ArithmeticError, LookupError),
    *(MemoryError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """An Arrow stream, with the fields of its payload reference."""

    data: bytes
    row_count: int
    schema_digest: str


def encode_rows(rows: Sequence[Json]) -> EncodedRows:
    """Return `rows` as one Arrow IPC stream; deterministic.

    Raises:
        TypeError: a value is not JSON.
    """
    shape, columns = columns_of(rows)
    arrays, fields = [], []
    for name, values in columns.items():
        array, marks = column_of(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=marks))
    return _written(pa.schema(fields, metadata={ROWS: shape}), arrays, len(rows))


def decode_rows(data: bytes | pa.Buffer) -> list[Json]:
    """Return the rows of a stream that `encode_rows`, or any Arrow writer, made.

    Raises:
        PayloadBomb: it claims more than its bytes can hold, or rows would take too much memory.
        PayloadCorrupt: it is not an Arrow stream.
    """
    return rows_of(read_table(data))


def read_table(
    data: bytes | pa.Buffer,
    what: str = "rows",
    *,
    row_count: int | None = None,
    unpacked_bytes: int | None = None,
) -> pa.Table:
    """Return an Arrow stream as a table, without copying the bytes.

    Every offset is validated: the stream is untrusted, and Arrow would follow a wrong one out of
    bounds. With a `row_count` the stream must have that many rows.

    Raises:
        PayloadBomb: it claims more than its bytes can hold, or unpacks to too much.
        PayloadCorrupt: it is not an Arrow stream, or has another number of rows.
    """
    try:
        table = unpacked(data, unpacked_bytes)
        table.validate(full=True)
        check_table(table, len(data))
    except Grows as error:
        raise PayloadBomb(what, f"an Arrow stream that grows: {error}") from error
    except (pa.ArrowException, OSError, MemoryError, ValueError, struct.error) as error:
        raise PayloadCorrupt(what, f"not an Arrow stream: {error}") from error
    if row_count is not None and table.num_rows != row_count:
        raise PayloadCorrupt(what, f"the stream has {table.num_rows} rows, not {row_count}")
    return table


def rows_of(table: pa.Table, leaf: Leaf = as_json) -> list[Json]:
    """Return the rows of a table as JSON; `leaf` converts other values.

    The table must be validated by `read_table`, or made here.

    Raises:
        PayloadBomb: they would take too much memory.
        PayloadCorrupt: its values do not match its columns.
    """
    check_rows(table)
    try:
        columns: list[Any] = [
            column_values(column, field, leaf)
            for column, field in zip(table.columns, table.schema, strict=True)
        ]
        if is_values(table.schema):
            values: list[Json] = columns[0]
            return values
        rows: list[Any] = joined(table.schema.names, columns, table.num_rows)
    except _BAD_VALUES as error:
        raise PayloadCorrupt("rows", f"an Arrow stream with wrong values: {error}") from error
    return rows


def check_rows(table: pa.Table) -> None:
    """Reject a table of too many rows before any is created.

    Raises:
        PayloadBomb: they would take too much memory.
    """
    try:
        check_objects(table)
    except Grows as error:
        raise PayloadBomb("rows", f"an Arrow stream that grows: {error}") from error


def is_values(schema: pa.Schema) -> bool:
    """Return whether the table holds bare values, not objects."""
    return bool((schema.metadata or {}).get(ROWS) == b"values")


def means_missing(field: pa.Field) -> bool:
    """Return whether a null in the column means that the key is missing."""
    return bool((field.metadata or {}).get(NULL) == b"missing")


def columns_of(rows: Sequence[Any]) -> tuple[bytes, Mapping[str, Sequence[object]]]:
    """Return the shape of rows and their columns by name."""
    if set(map(type, rows)) == {dict} and (columns := keyed(rows, MOST_COLUMNS)):
        return b"objects", columns
    return b"values", {"value": rows}


def _written(schema: pa.Schema, arrays: list[pa.Array], row_count: int) -> EncodedRows:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    digest = _digest(schema.serialize().to_pybytes())
    return EncodedRows(sink.getvalue().to_pybytes(), row_count, digest)


@lru_cache(256)
def _digest(written: bytes) -> str:
    """Hash the content of a schema, independent of Arrow's encoding.

    Cached: the frames of a stage share a schema.
    """
    schema = pa.ipc.read_schema(pa.py_buffer(written))
    fields = [_described(field) for field in schema]
    return sha256(orjson.dumps([fields, schema.metadata[ROWS].decode()])).hexdigest()


def _described(field: pa.Field) -> list[object]:
    kind, marks = field.type, field.metadata or {}
    described: list[object] = [
        field.name,
        str(kind),
        sorted((k.decode(), v.decode()) for k, v in marks.items()),
    ]
    if kind.num_fields:
        # The type's text omits the metadata of its inner fields.
        described.append([_described(kind.field(n)) for n in range(kind.num_fields)])
    return described
