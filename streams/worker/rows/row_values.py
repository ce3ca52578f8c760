"""Values of a frame's rows: outputs, sizes, changes and texts of errors."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from streams.events.model import Json
from streams.worker.attempt.row import RowOutcome, TaskOutcome


def merged_changes(changes: Mapping[int, Mapping[str, Json]]) -> dict[str, Json]:
    """Return the changes of all rows, later rows over earlier ones."""
    whole: dict[str, Json] = {}
    for number in sorted(changes):
        whole |= changes[number]
    return whole


def row_output(outcomes: Mapping[str, TaskOutcome], ran: RowOutcome) -> Json:
    """Return a row's output: the reference if its last result is stored, else the data."""
    last = outcomes.get(ran.task)
    if last is None or last.placed is None or last.placed.reference is None:
        return ran.data
    return last.placed.reference.to_json()


def error_message(error: Mapping[str, Json]) -> str:
    """Return kind and message of a row's error."""
    return f"{error.get('kind')}: {error.get('message')}"


def item_text(item: Json) -> str:
    """Return a row's item as text."""
    return item if isinstance(item, str) else orjson.dumps(item, default=str).decode()


def value_size(value: Json) -> int:
    """Return the approximate bytes of a value."""
    return 8 if value is None else len(orjson.dumps(value, default=str))
