"""Rows and MERGE statements for the table engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from streams.events.model import Json
from streams.playbook.errors import BadSink
from streams.playbook.sinks.rows import group_by_columns, range_of, rows_of
from streams.worker.errors import BadConfig
from streams.worker.sinks.format import columns_of
from streams.worker.sinks.port import SinkJob, SinkReference

Row = Mapping[str, Json]
Scalar = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a job, and the union of their columns."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Row]


def table_rows(job: SinkJob) -> TableRows:
    """Return the rows of a declarative job.

    Raises:
        BadConfig: there is no table, or a row is not a mapping.
    """
    if job.table is None:
        raise BadConfig(f"a {job.storage} sink needs a table")
    try:
        rows = rows_of(job.data)
    except BadSink as error:
        raise BadConfig(str(error)) from error
    return TableRows(job.table, tuple(columns_of(rows)), rows)


def groups(job: SinkJob, rows: TableRows) -> list[TableRows]:
    """Return the rows in groups that one statement can write: an update needs equal columns.

    Raises:
        BadConfig: a row has no value for the key.
    """
    if job.mode not in ("update", "upsert") or not rows.rows:
        return [rows] if rows.rows else []
    try:
        made = group_by_columns(rows.rows, job.key)
    except BadSink as error:
        raise BadConfig(str(error)) from error
    return [TableRows(rows.table, tuple(columns_of(some)), some) for some in made]


def last_of_key(rows: Sequence[Row], key: Sequence[str]) -> list[Row]:
    """Return the last row of each key; NULLs are distinct."""
    last: dict[int | tuple[str | None, ...], Row] = {}
    for place, row in enumerate(rows):
        values = tuple(None if row[name] is None else str(row[name]) for name in key)
        last[place if None in values else values] = row
    return list(last.values())


def reference(job: SinkJob, rows: TableRows | None, count: int | None = None) -> SinkReference:
    """Return the reference to the rows; `count` overrides their number if the storage counted."""
    if rows is None:
        return {"store": job.storage, "key": "statement", "range": ""}
    span = range_of(rows.rows, job.key) if count is None else f"rows:{count}"
    return {"store": job.storage, "key": rows.table, "range": span}


def text_of_json(value: Json) -> Scalar:
    """Return objects and lists as JSON text, other values unchanged."""
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, default=str).decode()
    return value


def merge(
    rows: TableRows, key: Sequence[str], source: str, quote: Callable[[str], str], *, inserts: bool
) -> str:
    """Return the MERGE of `source`, whose columns are the rows', into the table.

    Raises:
        BadConfig: it would change nothing.
    """
    rest = [name for name in rows.columns if name not in key]
    if not rest and not inserts:
        raise BadConfig("an update of nothing but its key changes nothing")
    on = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in key)
    parts = [f"MERGE INTO {rows.table} AS t USING ({source}) AS s ON {on}"]
    if rest:
        changes = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in rest)
        parts.append(f"WHEN MATCHED THEN UPDATE SET {changes}")
    if inserts:
        into = ", ".join(map(quote, rows.columns))
        values = ", ".join(f"s.{quote(name)}" for name in rows.columns)
        parts.append(f"WHEN NOT MATCHED THEN INSERT ({into}) VALUES ({values})")  # noqa: S608 - names, quoted
    return " ".join(parts)
