"""Rows for a DuckDB table, written as an Arrow table in one statement.

A value is cast from its own type to that of its column. A column may hold a number in one row
and text in the next, so each kind of value gets its own Arrow column.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from streams.events.model import Json
from streams.playbook.errors import BadSink
from streams.playbook.sinks.rows import column, quote_table
from streams.worker.sinks.tables import TableRows, text_of_json

_ROWS = "noetl_rows"
_PLACE = "noetl_place"


def write(
    session: duckdb.DuckDBPyConnection, rows: TableRows, mode: str, key: Sequence[str]
) -> int:
    """Append, update or upsert the rows (the last of each key); return how many were written.

    Raises:
        BadSink: an update has nothing to set.
        duckdb.Error: the engine rejects them.
    """
    columns, keys = tuple(map(column, rows.columns)), tuple(map(column, key))
    rest = [name for name in columns if name not in keys]
    if mode == "update" and not rest:
        raise BadSink("an update of nothing but its key changes nothing")
    table, names = quote_table(rows.table), ", ".join(columns)
    there = session.execute(f"DESCRIBE SELECT {names} FROM {table}").fetchall()  # noqa: S608
    made, source = _source(rows, columns, [one[1] for one in there])
    if mode != "append":
        source = f"{source} QUALIFY {_is_last(keys)}"
    if mode == "update":
        changes = ", ".join(f"{name} = s.{name}" for name in rest)
        where = " AND ".join(f"t.{name} = s.{name}" for name in keys)
        sql = f"UPDATE {table} AS t SET {changes} FROM ({source}) AS s WHERE {where}"  # noqa: S608
    else:
        sql = f"INSERT INTO {table} ({names}) SELECT {names} FROM ({source}) ORDER BY {_PLACE}"  # noqa: S608
    if mode == "upsert":
        changes = ", ".join(f"{name} = EXCLUDED.{name}" for name in rest)
        then = f"UPDATE SET {changes}" if rest else "NOTHING"
        sql = f"{sql} ON CONFLICT ({', '.join(keys)}) DO {then}"
    session.register(_ROWS, made)
    try:
        [count] = session.execute(sql).fetchone() or (0,)
    finally:
        session.unregister(_ROWS)
    return int(count)


def _source(rows: TableRows, columns: Sequence[str], types: Sequence[str]) -> tuple[pa.Table, str]:
    """Return the rows as a table, and the SELECT that casts it to the columns' types."""
    arrays: dict[str, pa.Array] = {_PLACE: pa.array(range(len(rows.rows)))}
    selected = [_PLACE]
    for place, (name, kind) in enumerate(zip(columns, types, strict=True)):
        values = [text_of_json(row.get(rows.columns[place])) for row in rows.rows]
        kinds = dict.fromkeys(type(value) for value in values if value is not None)
        casts = []
        for number, one in enumerate(kinds):
            of = f"c{place}_{number}"
            arrays[of] = _array([value if type(value) is one else None for value in values])
            casts.append(f"CAST({of} AS {kind})")
        made = casts[0] if len(casts) == 1 else f"coalesce({', '.join(casts)})"
        selected.append(f"{made if casts else f'CAST(NULL AS {kind})'} AS {name}")
    return pa.table(arrays), f"SELECT {', '.join(selected)} FROM {_ROWS}"  # noqa: S608 - names, quoted


def _array(values: list[Json]) -> pa.Array:
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowException):  # integers beyond 64 bits, which DuckDB supports
        return pa.array([None if value is None else str(value) for value in values])


def _is_last(keys: Sequence[str]) -> str:
    """Return the condition for the last row of each key; NULLs are distinct."""
    of_key = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {_PLACE} DESC) = 1"
    return " OR ".join([of_key, *(f"{name} IS NULL" for name in keys)])
