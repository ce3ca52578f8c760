"""Lossless union of a stage's tables with different schemas.

The result is independent of how rows were split into frames: a column retains its type if all
frames agree; a column of nulls takes the others' type; structs gain the
fields that some frames lack; decimals, and whole numbers beside fractions, are widened. Where
values conflict (text here and numbers there, objects and bare values) they become JSON text, in
which every value says what it is. The rows of the whole are the rows of the parts, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streams.payload.arrow.columns import ENCODING, MISSING, NULL, as_text, column_of
from streams.payload.arrow.rows import (
    MOST_COLUMNS,
    ROWS,
    columns_of,
    encode_rows,
    is_values,
    means_missing,
    read_table,
    rows_of,
)
from streams.payload.arrow.times import as_json
from streams.payload.arrow.values import column_values, unread

_EMPTY = encode_rows([]).data


def unify(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of `tables` as one table.

    Tables with the same schema are joined without copying, and so are columns that agree.

    Raises:
        pa.ArrowInvalid, TypeError, ValueError: a table's values do not match its columns.
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
    names = list(dict.fromkeys(name for part in parts for name in part.schema.names))
    is_twice = any(len(set(part.schema.names)) < part.num_columns for part in parts)
    if len(shapes) > 1 or is_twice or len(names) > MOST_COLUMNS:
        return _anew(parts)
    shape = b"values" if shapes == {True} else b"objects"
    columns = [_column(name, [_part(part, name) for part in parts]) for name in names]
    schema = pa.schema([field for field, _ in columns], metadata={ROWS: shape})
    return pa.table([column for _, column in columns], schema=schema)


class _Part:
    """One column of one table, or the lack of it."""

    def __init__(self, field: pa.Field | None, column: pa.ChunkedArray | None, count: int) -> None:
        self.field, self.column, self.count = field, column, count
        marks = {} if field is None else dict(field.metadata or {})
        self.is_missing = field is None or means_missing(field)
        marks.pop(NULL, None)
        nulls = count if column is None else column.null_count
        self.has_nulls = not self.is_missing and nulls > 0
        # A column of only nulls does not determine the type.
        self.typed = None if field is None or nulls == count else _bare(field.type, marks)

    def values(self) -> Sequence[object]:
        if self.field is None or self.column is None:
            return [MISSING] * self.count
        return column_values(self.column, self.field, unread)


def _bare(kind: pa.DataType, marks: dict[bytes, bytes]) -> pa.Field:
    return pa.field("", kind, metadata=marks or None)


def _part(table: pa.Table, name: str) -> _Part:
    index = table.schema.get_field_index(name)
    if index < 0:
        return _Part(None, None, table.num_rows)
    return _Part(table.schema.field(index), table.column(index), table.num_rows)


def _column(name: str, pieces: Sequence[_Part]) -> tuple[pa.Field, pa.ChunkedArray]:
    types = [piece.typed for piece in pieces if piece.typed is not None] or [_bare(pa.string(), {})]
    missing = any(piece.is_missing for piece in pieces)
    nulls = any(piece.has_nulls for piece in pieces)
    marks = dict(types[0].metadata or {})
    is_clear = not nulls or not (missing or ENCODING in marks)
    if is_clear and all(one.equals(types[0], check_metadata=True) for one in types):
        if missing:
            marks[NULL] = b"missing"
        field = pa.field(name, types[0].type, metadata=marks or None)
        return field, pa.chunked_array(_chunks(pieces, field.type), field.type)
    array, given = _made([value for piece in pieces for value in piece.values()])
    return pa.field(name, array.type, metadata=given), pa.chunked_array([array])


def _chunks(pieces: Sequence[_Part], kind: pa.DataType) -> Iterator[pa.Array]:
    for piece in pieces:
        if piece.typed is None:
            yield pa.nulls(piece.count, kind)
        else:
            assert piece.column is not None
            yield from piece.column.chunks


def _made(values: Sequence[object]) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """Infer the type of all values together."""
    array, marks = column_of(values)
    if marks is None or ENCODING not in marks:
        return array, marks
    # JSON has no NaN and infinities: they become text, as in tools.
    return as_text([v if v is MISSING else as_json(v) for v in values], NULL in marks)


def _anew(parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows as a new table, if the tables have no columns in common."""
    shape, columns = columns_of([row for part in parts for row in rows_of(part, unread)])
    arrays, fields = [], []
    for name, values in columns.items():
        array, marks = _made(values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=marks))
    return pa.table(arrays, schema=pa.schema(fields, metadata={ROWS: shape}))
