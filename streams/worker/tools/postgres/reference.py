"""What a write leaves: a small reference to the rows, as a result's reader may want it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from streams.worker.attempt.secrets import concealed_value
from streams.worker.tools.postgres.statement import Statement, statements

_GAP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_TARGET = re.compile(
    rf"(?:{_GAP}+(?:into|from))?(?:{_GAP}+only)?{_GAP}+({_NAME}(?:\s*\.\s*{_NAME}){{0,2}})",
    re.I | re.S,
)
_WRITES = frozenset(("insert", "update", "delete", "merge"))
_VERBS = _WRITES | {"select", "values", "table"}


def written(command: Statement, answer: Mapping[str, Any], store: str = "db") -> dict[str, Any]:
    """Return {"store": "db", "key": table, "range": which rows} of a statement that wrote.

    The range is that of a column it returned: `id`, else the first of integers, else the first;
    or the count of its rows. A statement that only reads has none.
    """
    if not command.writes or (table := _target(command.text)) is None:
        return {}
    return {"store": store, "key": table, "range": _range(answer)}


@lru_cache(maxsize=1024)
def _target(text: str) -> str | None:
    """Return the table that a statement's own verb writes; of one that reads, the first inside."""
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


def _range(answer: Mapping[str, Any]) -> str:
    rows: Sequence[Mapping[str, Any]] = answer.get("rows") or ()
    for column in _columns(rows):
        values = [row[column] for row in rows]
        if _are(int, values):
            return f"{column}:{min(values)}-{max(values)}"
        if _are(str, values):
            first, last = (concealed_value(one)[:80] for one in (min(values), max(values)))
            return f"{column}:{first}-{last}"
    return f"rows:{answer.get('row_count', 0)}"


def _columns(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the columns that may tell the rows apart, the likeliest first.

    The table knows its key, and asking it would take longer than many a write.
    """
    names = list(rows[0]) if rows else []
    yield from (name for name in names if name.lower() == "id")
    yield from (name for name in names if _are(int, [row[name] for row in rows]))
    yield from names[:1]


def _are(kind: type, values: Sequence[Any]) -> bool:
    return all(type(value) is kind for value in values)
