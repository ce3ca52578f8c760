"""Tables of one stage whose schemas differ, as one table with nothing lost.

A column keeps its Arrow type where all frames agree on it; decimals are widened. Where they
disagree (text here and numbers there, whole numbers and fractions, objects and bare values)
it becomes JSON text, in which every value says what it is. The rows of the whole are the rows
of the parts, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streams.payload.rows import (
    ENCODING,
    MISSING,
    NULL,
    ROWS,
    as_text,
    column_values,
    encode_rows,
    is_values,
    means_missing,
    read_table,
    rows_of,
)
from streams.payload.times import Unfit, as_json, common_decimal

_EMPTY = encode_rows([]).data


def unify(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of `tables` as one table.

    Tables with the same schema are joined without copying.

    Raises:
        pa.ArrowInvalid: a table's values are not what its columns say.
    """
    parts = [table for table in tables if table.num_rows]
    if not parts:
        return tables[0] if tables else read_table(_EMPTY)
    first = parts[0].schema
    if all(part.schema.equals(first, check_metadata=True) for part in parts):
        return pa.concat_tables(parts)
    for part in parts:
        part.validate(full=True)
    shapes = {is_values(part.schema) for part in parts}
    if shapes == {True, False}:
        return _as_values(parts)
    names = list(dict.fromkeys(name for part in parts for name in part.schema.names))
    if len(names) < max(len(part.schema.names) for part in parts):
        return _as_values(parts)  # a name occurs twice in one table
    columns = {name: _column([_piece(part, name) for part in parts]) for name in names}
    schema = pa.schema([field for field, _ in columns.values()], metadata={ROWS: _shape(shapes)})
    return pa.table([column for _, column in columns.values()], schema=schema)


class _Piece:
    """One column of one table, or the lack of it."""

    def __init__(self, field: pa.Field | None, column: pa.ChunkedArray | None, count: int) -> None:
        self.field, self.column, self.count = field, column, count
        self.encoding = None if field is None else (field.metadata or {}).get(ENCODING)
        self.is_missing = field is None or means_missing(field)
        nulls = 0 if column is None else column.null_count
        self.has_nulls = not self.is_missing and self.encoding is None and nulls > 0
        # A column of nulls only says nothing about its type.
        self.type = None if field is None or nulls == count else field.type

    def values(self) -> list[Any]:
        if self.field is None or self.column is None:
            return [MISSING] * self.count
        values = column_values(self.column, self.field)
        # JSON text has no word for what is no number: it is written out, as tools do.
        is_float = pa.types.is_floating(self.field.type)
        return [v if v is MISSING else as_json(v) for v in values] if is_float else values


def _piece(table: pa.Table, name: str) -> _Piece:
    index = table.schema.get_field_index(name)
    if index < 0:
        return _Piece(None, None, table.num_rows)
    return _Piece(table.schema.field(index), table.column(index), table.num_rows)


def _column(pieces: Sequence[_Piece]) -> tuple[pa.Field, pa.ChunkedArray]:
    missing = any(piece.is_missing for piece in pieces)
    name = next(piece.field.name for piece in pieces if piece.field is not None)
    kind = _common_type(pieces)
    encodings = {piece.encoding for piece in pieces if piece.type is not None}
    if kind is None or len(encodings) > 1 or (missing and _any_null(pieces)):
        return _as_json(name, pieces, missing)
    encoding = next(iter(encodings), None)
    if encoding is not None and any(p.encoding is None and p.has_nulls for p in pieces):
        return _as_json(name, pieces, missing)
    marks = {} if encoding is None else {ENCODING: encoding}
    if missing:
        marks[NULL] = b"missing"
    field = pa.field(name, kind, metadata=marks or None)
    chunks: list[pa.Array] = []
    for piece in pieces:
        if piece.type is None:
            chunks.append(pa.nulls(piece.count, kind))
        else:
            assert piece.column is not None
            chunks += piece.column.cast(kind).chunks
    return field, pa.chunked_array(chunks, kind)


def _any_null(pieces: Sequence[_Piece]) -> bool:
    return any(piece.has_nulls for piece in pieces)


def _common_type(pieces: Sequence[_Piece]) -> pa.DataType | None:
    """Return the type that all pieces have or can be widened to without becoming another value."""
    types = list({piece.type for piece in pieces if piece.type is not None})
    if not types:
        return pa.string()
    if len(types) == 1:
        return types[0]
    if all(pa.types.is_decimal(one) for one in types):
        try:
            return common_decimal(types)
        except Unfit:
            return None
    return None


def _as_json(
    name: str, pieces: Sequence[_Piece], missing: bool
) -> tuple[pa.Field, pa.ChunkedArray]:
    values = [value for piece in pieces for value in piece.values()]
    array, marks = as_text(values, missing)
    return pa.field(name, array.type, metadata=marks), pa.chunked_array([array])


def _as_values(parts: Sequence[pa.Table]) -> pa.Table:
    """Return objects and bare values together, each row one JSON text."""
    array, marks = as_text([row for part in parts for row in rows_of(part)], False)
    field = pa.field("value", array.type, metadata=marks)
    return pa.table([array], schema=pa.schema([field], metadata={ROWS: b"values"}))


def _shape(shapes: set[bool]) -> bytes:
    return b"values" if True in shapes else b"objects"
