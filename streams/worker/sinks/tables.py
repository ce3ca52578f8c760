"""Rows for the table engines: what is written, by which statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from streams.playbook.errors import BadSink
from streams.playbook.sink_rows import range_of, rows_of
from streams.worker.errors import BadConfig
from streams.worker.sinks.format import columns_of
from streams.worker.sinks.port import Job, Reference


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a job, in columns."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]

    def values(self, convert: Callable[[Any], Any]) -> list[list[Any]]:
        """Return the value of every column of every row; NULL where a row has none."""
        return [[convert(row.get(name)) for name in self.columns] for row in self.rows]


def table_rows(job: Job) -> Rows:
    """Return the rows of a declarative job.

    Raises:
        BadConfig: there is no table, a row is no mapping, or its key is missing.
    """
    if job.table is None:
        raise BadConfig(f"a {job.storage} sink needs a table")
    try:
        rows = rows_of(job.data)
    except BadSink as error:
        raise BadConfig(str(error)) from error
    columns = tuple(columns_of(rows))
    if job.mode in ("update", "upsert") and rows:
        for name in job.key or ("",):
            if name not in columns:
                raise BadConfig(f"the key {name!r} is no column of `data`: {', '.join(columns)}")
    return Rows(job.table, columns, rows)


def reference(job: Job, rows: Rows | None) -> Reference:
    """Return where the rows are."""
    if rows is None:
        return {"store": job.storage, "key": "statement", "range": ""}
    return {"store": job.storage, "key": rows.table, "range": range_of(rows.rows, job.key)}


def text_of_json(value: Any) -> Any:
    """Return objects and lists as JSON text, everything else as it is."""
    if isinstance(value, (dict, list)):
        return orjson.dumps(value, default=str).decode()
    return value


def merge(
    rows: Rows, key: Sequence[str], source: str, quote: Callable[[str], str], *, inserts: bool
) -> str:
    """Return the MERGE of `source`, whose columns are the rows', into the table."""
    rest = [name for name in rows.columns if name not in key]
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
