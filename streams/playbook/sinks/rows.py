"""Rows of a sink as statements with bound values, for the tool that writes to Postgres.

The author's words become names in the statement, quoted; what is persisted is only ever bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from streams.events.model import Json
from streams.playbook.draft import IN_SINKS
from streams.playbook.errors import BadSink
from streams.playbook.expressions import Template
from streams.playbook.template_compiler import KeyPath

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
QUOTED = re.compile(r'"(?:[^"]|"")+"')
"""A name that is meant as it stands, not folded."""
_NAME = re.compile(rf'{QUOTED.pattern}|[^".]+')
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")
Row = Mapping[str, Any]
MOST_TEXT = 80
"""How much of a key's text a reference tells."""


class RowsToPostgres:
    """Renders to the configuration of a postgres task: a statement, its rows, a reference."""

    def __init__(self, block: Template) -> None:
        self._block, self.names, self.key_paths = block, *outer(block)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration.

        Raises:
            BadSink: there is nothing to write, or it is no row.
        """
        block: Any = self._block.render(scope)
        table, mode = str(block["table"]), str(block["mode"])
        rows = rows_of(block["data"])
        key = tuple(block["key"])
        return {**block["address"], **_limit(block), **_save(table, mode, key, rows)}


class VectorsToPostgres:
    """Renders `id`, `vector` and `meta` to a postgres task for a table of pgvector."""

    def __init__(self, block: Template) -> None:
        self._block, self.names, self.key_paths = block, *outer(block)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration.

        Raises:
            BadSink: a row has no id or no vector.
        """
        block: Any = self._block.render(scope)
        columns = {
            part: str(block["spec"].get(f"{part}_column") or usual)
            for part, usual in (("id", "id"), ("vector", "embedding"), ("meta", "meta"))
        }
        rows = [_vector(row, columns) for row in rows_of(block["data"])]
        key = (columns["id"],)
        saved = _save(str(block["table"]), str(block["mode"]), key, rows)
        told = {"store": "vector", "range": range_of(rows, key)}
        saved["reference"] = {**saved["reference"], **told}
        return {**block["address"], **_limit(block), **saved}


class ReferenceTo:
    """Renders a task's configuration with a reference to what it writes added."""

    def __init__(self, config: Template, reference: Mapping[str, Json]) -> None:
        self._config, self._reference = config, reference
        self.names, self.key_paths = outer(config)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration."""
        config: Any = self._config.render(scope)
        return {**config, "reference": dict(self._reference)}


def outer(block: Template) -> tuple[frozenset[str], frozenset[KeyPath]]:
    """Return what a sink's templates read, beside the result that it persists."""
    key_paths = frozenset(key_path for key_path in block.key_paths if key_path[0] not in IN_SINKS)
    return frozenset(key_path[0] for key_path in key_paths), key_paths


def rows_of(data: Any) -> list[Row]:
    """Return what is persisted as rows.

    Raises:
        BadSink: it is no mapping and no list of mappings, or has no columns.
    """
    rows = [data] if isinstance(data, Mapping) else data
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        raise BadSink(f"`data` is {kind}; a table takes a mapping or a list of mappings")
    if any(not row for row in rows):
        raise BadSink("`data` has a row without columns")
    return rows


def range_of(rows: Sequence[Row], key: Sequence[str]) -> str:
    """Say which rows were written: by the first column of their key, or how many."""
    values: list[Any] = [row.get(key[0]) for row in rows] if key else []
    if not values or any(not isinstance(value, (str, int)) for value in values):
        return f"rows:{len(rows)}"
    try:
        first, last = min(values), max(values)
    except TypeError:
        return f"rows:{len(rows)}"
    low, high = str(first)[:MOST_TEXT], str(last)[:MOST_TEXT]
    return f"{key[0]}:{low}" if first == last else f"{key[0]}:{low}-{high}"


def group_by_columns(rows: Sequence[Row], key: Sequence[str]) -> list[list[Row]]:
    """Return rows in groups of the same columns, since a column that a row lacks is left alone.

    Where a key is in two groups, its rows must follow each other: then groups are of neighbours.

    Raises:
        BadSink: a row has no value for its key.
    """
    groups: dict[frozenset[str], list[Row]] = {}
    for row in rows:
        if absent := [name for name in key if name not in row]:
            raise BadSink(f"the key {absent[0]!r} is no column of a row: {', '.join(row)}")
        groups.setdefault(frozenset(row), []).append(row)
    named = [{tuple(str(row[name]) for name in key) for row in group} for group in groups.values()]
    if len(named) < 2 or sum(map(len, named)) == len(set().union(*named)):
        return list(groups.values())
    return [list(group) for _, group in groupby(rows, frozenset)]


def quote_table(name: str) -> str:
    """Return a name as SQL reads it; a plain one is folded to lower case, as Postgres does.

    Raises:
        BadSink: it is no name.
    """
    if not _NAMES.fullmatch(name):
        raise BadSink(f"{name!r} is no name of a table; write table, or schema.table")
    parts = _NAME.findall(name)
    made = [
        part if part.startswith('"') else _quote(part.lower() if _PLAIN.fullmatch(part) else part)
        for part in parts
    ]
    return ".".join(made)


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _limit(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long the write may take, where the author says it."""
    return {"timeout": block["spec"]["timeout"]} if "timeout" in block["spec"] else {}


def _save(table: str, mode: str, key: tuple[str, ...], rows: Sequence[Row]) -> dict[str, Any]:
    # How many rows an update finds only the database can tell.
    span = "" if mode == "update" and rows else range_of(rows, key)
    reference = {"store": "db", "key": table, "range": span}
    if not rows:
        nothing = f"DELETE FROM {quote_table(table)}" if mode == "overwrite" else "SELECT 1"  # noqa: S608
        return {"command": nothing, "reference": reference}
    groups = group_by_columns(rows, key) if mode in ("update", "upsert") else [rows]
    saves = [_part(table, mode, key, group) for group in groups]
    return {**(saves[0] if len(saves) == 1 else {"saves": saves}), "reference": reference}


def _part(table: str, mode: str, key: tuple[str, ...], rows: Sequence[Row]) -> dict[str, Any]:
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    marks = list(zip(placeholders(columns), columns, strict=True))
    bound = [{mark: row.get(name) for mark, name in marks} for row in rows]
    return {"command": statement(table, mode, key, columns), "rows": bound}


def placeholders(columns: Sequence[str]) -> list[str]:
    """Return what stands behind a colon for each column: its place, as a name may be anything."""
    return [f"c{place}" for place in range(len(columns))]


@lru_cache(maxsize=1024)
def statement(table: str, mode: str, key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    """Return the statement that writes one row of these columns."""
    names = dict(zip(columns, placeholders(columns), strict=True))
    rest = [name for name in columns if name not in key]
    if mode == "update":
        if not rest:
            raise BadSink("an update of nothing but its key changes nothing")
        changes = ", ".join(f"{column(name)} = :{names[name]}" for name in rest)
        where = " AND ".join(f"{column(name)} = :{names[name]}" for name in key)
        return f"UPDATE {quote_table(table)} SET {changes} WHERE {where}"  # noqa: S608 - names, quoted
    into = ", ".join(map(column, columns))
    values = ", ".join(f":{names[name]}" for name in columns)
    made = f"INSERT INTO {quote_table(table)} ({into}) VALUES ({values})"  # noqa: S608 - names, quoted
    if mode == "overwrite":
        return f"DELETE FROM {quote_table(table)}; {made}"  # noqa: S608 - names, quoted
    if mode != "upsert":
        return made
    changes = ", ".join(f"{column(name)} = EXCLUDED.{column(name)}" for name in rest)
    then = f"UPDATE SET {changes}" if rest else "NOTHING"
    return f"{made} ON CONFLICT ({', '.join(map(column, key))}) DO {then}"


def column(name: str) -> str:
    """Return a column's name as SQL reads it; one in quotes is meant as it stands."""
    if QUOTED.fullmatch(name):
        return name
    return _quote(name.lower() if _PLAIN.fullmatch(name) else name)


def _vector(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    for part in ("id", "vector"):
        if part not in row:
            raise BadSink(f"`data` of a vector sink needs {part!r}: there is {', '.join(row)}")
    if unknown := row.keys() - columns.keys():
        raise BadSink(f"`data` of a vector sink takes id, vector and meta, not {min(unknown)!r}")
    return {columns[part]: value for part, value in row.items()}
