"""What a write leaves: a small reference to the rows, as a result's reader may want it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from streams.worker.secrets import concealed_value
from streams.worker.tools.pg_statement import Statement

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_TARGET = re.compile(
    rf"\b(?:insert\s+into|merge\s+into|delete\s+from|update)\s+(?:only\s+)?({_NAME}(?:\.{_NAME})?)",
    re.I,
)


def written(command: Statement, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"store": "db", "key": table, "range": which rows} of a statement that wrote.

    The range is that of the first column it returned, or the count of its rows. A statement
    that only reads has none.
    """
    if not command.writes or (table := _target(command.text)) is None:
        return {}
    return {"store": "db", "key": table, "range": _range(answer)}


@lru_cache(maxsize=1024)
def _target(text: str) -> str | None:
    found = _TARGET.search(text)
    return None if found is None else found[1].replace('"', "")


def _range(answer: Mapping[str, Any]) -> str:
    rows: Sequence[Mapping[str, Any]] = answer.get("rows") or ()
    column = next(iter(rows[0]), None) if rows else None
    if column is not None:
        values = [row[column] for row in rows]
        if all(type(value) is int for value in values):
            return f"{column}:{min(values)}-{max(values)}"
        if all(isinstance(value, str) for value in values):
            first, last = (concealed_value(one)[:80] for one in (min(values), max(values)))
            return f"{column}:{first}-{last}"
    return f"rows:{answer.get('row_count', 0)}"
