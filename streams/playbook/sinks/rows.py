"""Rows of a sink as statements with bound values, for the postgres tool.

The author's table and columns are quoted in the statement; data is always bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from streams.events.model import Json
from streams.playbook.draft import IN_SINKS
from streams.playbook.errors import BadSink
from streams.playbook.template import Template
from streams.playbook.template_compiler import KeyPath
from streams.playbook.yaml_document import as_mapping

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
QUOTED = re.compile(r'"(?:[^"]|"")+"')
"""A quoted name, which is not folded."""
_NAME = re.compile(rf'{QUOTED.pattern}|[^".]+')
_NAMES = re.compile(rf"(?:{_NAME.pattern})(?:\.(?:{_NAME.pattern}))*")
Row = Mapping[str, Json]
MOST_TEXT = 80
"""Most characters of a key in a reference."""


class RowsToPostgres:
    """Renders to the configuration of a postgres task: a statement, its rows, a reference."""

    def __init__(self, block: Template, mode: str, key: Sequence[str]) -> None:
        self._block, self.names, self.key_paths = block, *outer(block)
        self._mode, self._key = mode, tuple(key)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration.

        Raises:
            BadSink: there is nothing to write, or it is not a row.
        """
        block = rendered(self._block, scope)
        save = save_of(str(block["table"]), self._mode, self._key, rows_of(block["data"]))
        return {**as_mapping(block["address"]), **_limit(block["spec"]), **save}


class VectorsToPostgres:
    """Renders `id`, `vector` and `meta` to a postgres task for a table of pgvector."""

    def __init__(self, block: Template, mode: str) -> None:
        self._block, self.names, self.key_paths = block, *outer(block)
        self._mode = mode

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration.

        Raises:
            BadSink: a row has no id or no vector.
        """
        block = rendered(self._block, scope)
        spec, table = as_mapping(block["spec"]), str(block["table"])
        columns = {
            part: str(spec.get(f"{part}_column") or usual)
            for part, usual in (("id", "id"), ("vector", "embedding"), ("meta", "meta"))
        }
        rows = [_vector(row, columns) for row in rows_of(block["data"])]
        key = (columns["id"],)
        save = save_of(table, self._mode, key, rows)
        save["reference"] = {"store": "vector", "key": table, "range": range_of(rows, key)}
        return {**as_mapping(block["address"]), **_limit(spec), **save}


class ReferenceTo:
    """Renders a task's configuration with a reference to what it writes added."""

    def __init__(self, config: Template, reference: Mapping[str, Json]) -> None:
        self._config, self._reference = config, reference
        self.names, self.key_paths = outer(config)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the task's configuration."""
        return {**rendered(self._config, scope), "reference": dict(self._reference)}


def rendered(block: Template, scope: Mapping[str, object]) -> dict[str, Json]:
    """Render a template that yields a mapping."""
    return as_mapping(block.render(scope))


def outer(block: Template) -> tuple[frozenset[str], frozenset[KeyPath]]:
    """Return what a sink's templates read besides the persisted result."""
    key_paths = frozenset(key_path for key_path in block.key_paths if key_path[0] not in IN_SINKS)
    return frozenset(key_path[0] for key_path in key_paths), key_paths


def rows_of(data: Json) -> list[Row]:
    """Return the persisted data as rows.

    Raises:
        BadSink: it is neither a mapping nor a list of mappings, or has no columns.
    """
    items = data if isinstance(data, list) else [data]
    rows: list[Row] = [row for row in items if isinstance(row, Mapping)]
    if len(rows) != len(items):
        kind = "nothing" if data is None else f"a {type(data).__name__}"
        raise BadSink(f"`data` is {kind}; a table takes a mapping or a list of mappings")
    if not all(rows):
        raise BadSink("`data` has a row without columns")
    return rows


def range_of(rows: Sequence[Row], key: Sequence[str]) -> str:
    """Return the range of the rows: by the first column of their key, or their count."""
    values = [row.get(key[0]) for row in rows] if key else []
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if isinstance(value, int)]
    first: str | int
    last: str | int
    if values and len(texts) == len(values):
        first, last = min(texts), max(texts)
    elif values and len(numbers) == len(values):
        first, last = min(numbers), max(numbers)
    else:
        return f"rows:{len(rows)}"
    low, high = str(first)[:MOST_TEXT], str(last)[:MOST_TEXT]
    return f"{key[0]}:{low}" if first == last else f"{key[0]}:{low}-{high}"


def group_by_columns(rows: Sequence[Row], key: Sequence[str]) -> list[list[Row]]:
    """Group rows by equal columns, since a column that a row lacks is not changed.

    If a key is in two groups, the order of its rows matters: then only adjacent rows are grouped.

    Raises:
        BadSink: a row has no value for the key.
    """
    groups: dict[frozenset[str], list[Row]] = {}
    for row in rows:
        if absent := [name for name in key if name not in row]:
            raise BadSink(f"the key {absent[0]!r} is not a column of a row: {', '.join(row)}")
        groups.setdefault(frozenset(row), []).append(row)
    named = [{tuple(str(row[name]) for name in key) for row in group} for group in groups.values()]
    if len(named) < 2 or sum(map(len, named)) == len(set().union(*named)):
        return list(groups.values())
    return [list(group) for _, group in groupby(rows, frozenset)]


def quote_table(name: str) -> str:
    """Return a quoted name; a plain one is folded to lower case, as in Postgres.

    Raises:
        BadSink: it is not a valid name.
    """
    if not _NAMES.fullmatch(name):
        raise BadSink(f"{name!r} is not a valid table name; write table, or schema.table")
    parts = _NAME.findall(name)
    made = [
        part if part.startswith('"') else _quote(part.lower() if _PLAIN.fullmatch(part) else part)
        for part in parts
    ]
    return ".".join(made)


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _limit(spec: Json) -> dict[str, Json]:
    """Return the timeout of the write, if given."""
    return {"timeout": spec["timeout"]} if isinstance(spec, dict) and "timeout" in spec else {}


def save_of(table: str, mode: str, key: tuple[str, ...], rows: Sequence[Row]) -> dict[str, Json]:
    """Return the statements of a save with their rows, and the reference to them.

    Raises:
        BadSink: a name or a row is not valid.
    """
    # Only the database knows how many rows an update matches.
    span = "" if mode == "update" and rows else range_of(rows, key)
    reference: dict[str, Json] = {"store": "db", "key": table, "range": span}
    if not rows:
        nothing = f"DELETE FROM {quote_table(table)}" if mode == "overwrite" else "SELECT 1"  # noqa: S608
        return {"command": nothing, "reference": reference}
    groups = group_by_columns(rows, key) if mode in ("update", "upsert") else [rows]
    if len(groups) == 1:
        return {**_part(table, mode, key, groups[0]), "reference": reference}
    saves: list[Json] = [_part(table, mode, key, group) for group in groups]
    return {"saves": saves, "reference": reference}


def _part(table: str, mode: str, key: tuple[str, ...], rows: Sequence[Row]) -> dict[str, Json]:
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    marks = list(zip(placeholders(columns), columns, strict=True))
    bound: list[Json] = [{mark: row.get(name) for mark, name in marks} for row in rows]
    return {"command": statement(table, mode, key, columns), "rows": bound}


def placeholders(columns: Sequence[str]) -> list[str]:
    """Return a parameter name for each column: its position, as column names are arbitrary."""
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
    """Return a column's quoted name; one already in quotes is not folded."""
    if QUOTED.fullmatch(name):
        return name
    return _quote(name.lower() if _PLAIN.fullmatch(name) else name)


def _vector(row: Row, columns: Mapping[str, str]) -> dict[str, Json]:
    for part in ("id", "vector"):
        if part not in row:
            raise BadSink(f"`data` of a vector sink needs {part!r}: there is {', '.join(row)}")
    if unknown := row.keys() - columns.keys():
        raise BadSink(f"`data` of a vector sink takes id, vector and meta, not {min(unknown)!r}")
    return {columns[part]: value for part, value in row.items()}
