"""Reference to the rows that a statement wrote: store, table, range."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from streams.events.model import Json
from streams.worker.attempt.secrets import concealed_value
from streams.worker.tools.postgres.statement import Statement, statements
from streams.worker.tools.sql_answer import SqlAnswer

T = TypeVar("T")
_GAP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_TARGET = re.compile(
    rf"(?:{_GAP}+(?:into|from))?(?:{_GAP}+only)?{_GAP}+({_NAME}(?:\s*\.\s*{_NAME}){{0,2}})",
    re.I | re.S,
)
_WRITES = frozenset(("insert", "update", "delete", "merge"))
_VERBS = _WRITES | {"select", "values", "table"}


def reference_of(command: Statement, answer: SqlAnswer, store: str = "db") -> dict[str, Json]:
    """Return {"store": "db", "key": table, "range": rows} of a statement that wrote.

    The range is that of a returned column: `id`, else the first of integers, else the first; or
    the count of rows. A statement that only reads has no reference.
    """
    if not command.writes or (table := _target(command.text)) is None:
        return {}
    return {"store": store, "key": table, "range": _range(answer)}


@lru_cache(maxsize=1024)
def _target(text: str) -> str | None:
    """Return the table that a statement's main verb writes, else the first written within."""
    words = [one for one in statements(text)[0].tokens if one.kind == "word"]
    followers = [one.text.lower() for one in words[1:]] + [""]
    verbs = [
        one
        for one, follower in zip(words, followers, strict=True)
        if one.text.lower() in _VERBS and follower != "as"  # WITH update AS (…)
    ]
    own = next((one for one in verbs if one.depth == 0), None)
    if own is None or own.text.lower() not in _WRITES:
        own = next((one for one in verbs if one.depth and one.text.lower() in _WRITES), None)
    found = None if own is None else _TARGET.match(text, own.end)
    return None if found is None else "".join(re.findall(rf"{_NAME}|\.", found[1])).replace('"', "")


def _range(answer: SqlAnswer) -> str:
    rows = [row for row in answer.rows if isinstance(row, dict)]
    for column in _columns(rows):
        values = [row[column] for row in rows]
        if numbers := _all_of(int, values):
            return f"{column}:{min(numbers)}-{max(numbers)}"
        if texts := _all_of(str, values):
            first, last = (concealed_value(one)[:80] for one in (min(texts), max(texts)))
            return f"{column}:{first}-{last}"
    return f"rows:{answer.row_count}"


def _columns(rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the columns that may identify the rows, the likeliest first.

    Querying the table's key would take longer than many writes.
    """
    names = list(rows[0]) if rows else []
    yield from (name for name in names if name.lower() == "id")
    yield from (name for name in names if _all_of(int, [row[name] for row in rows]))
    yield from names[:1]


def _all_of(kind: type[T], values: Sequence[Json]) -> list[T]:
    """Return the values if all are exactly of this type; else nothing."""
    found = [value for value in values if isinstance(value, kind) and type(value) is kind]
    return found if len(found) == len(values) else []
