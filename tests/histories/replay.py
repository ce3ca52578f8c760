"""Recorded executions: the sealed events of each, and the state after every one of them.

A file of `executions/` is a list of events in the order of the log. Each has its envelope as
it was sealed, what the log assigned, and how the state of its execution changed: `set` names
the leaves of the plan and of the projector's rows that have a new value, `unset` those that
are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import orjson

from streams.events.model import Assigned, Event
from streams.projector.core import View
from streams.results.envelope import Envelope
from tests.support.events.examples import codec
from tests.support.projector.rows import rows_after

FOLDER = Path(__file__).with_name("executions")
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.json")))
RENAMED: Mapping[str, str] = {}
"""Fields of today's states by the names they had when histories were recorded."""
ADDED = frozenset({"plan/last_event_id"})
"""Leaves with content that every state has had only since the first histories were recorded."""
ADDED_TO_ROWS = ("/state_checksum",)
"""The ends of such leaves of rows, whose paths have ids."""
Leaves = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of a history, and the leaves of its execution's state after it."""

    envelope: Mapping[str, Any]
    event: Event
    state: Leaves


def recorded(name: str) -> Iterator[Recorded]:
    """Yield the events of a history; their states are those of the fold that recorded it."""
    states: dict[int, Leaves] = {}
    for one in orjson.loads((FOLDER / f"{name}.json").read_bytes()):
        given = {**one["assigned"], "ingest_time": datetime.fromisoformat(one["assigned"]["at"])}
        given.pop("at")
        event = codec().decode(codec().encode(one["envelope"]), Assigned(**given))
        state = states.setdefault(event.root.id, {})
        for path in one["unset"]:
            del state[path]
        state |= one["set"]
        yield Recorded(one["envelope"], event, dict(state))


class Replay:
    """Folds the events of any number of executions with the code of today."""

    def __init__(self) -> None:
        self._views: dict[int, View] = {}
        self._rows: dict[int, dict[str, Any]] = {}

    def after(self, event: Event) -> Leaves:
        """Return the leaves of the plan and the rows of an execution after one more event."""
        root_id = event.root.id
        view, rows = rows_after(self._views.get(root_id, View()), event)
        self._views[root_id] = view
        known = self._rows.setdefault(root_id, {})
        for row in rows:
            table = type(row).__name__.removesuffix("Row").lower()
            known[f"{table} {'.'.join(map(str, row.key))}"] = row
        return leaves({"plan": view.plan, **known})


def leaves(value: Any, path: str = "") -> Leaves:
    """Return the scalars inside a value by their paths; None and empty containers have none."""
    match value:
        case None:
            return {}
        case Enum():
            return {path: value.value}
        case datetime():
            return {path: value.isoformat()}
        case Envelope():
            return leaves(value.to_json(), path)
        case Mapping():
            inner = {str(key): one for key, one in value.items()}
        case frozenset() | set():
            inner = dict.fromkeys(map(str, sorted(value)), True)
        case list() | tuple():
            inner = {str(index): one for index, one in enumerate(value)}
        case _ if is_dataclass(value):
            names = [field.name for field in fields(value)]
            inner = {RENAMED.get(name, name): getattr(value, name) for name in names}
        case _:
            return {path: value}
    found: Leaves = {}
    for key, one in inner.items():
        found |= leaves(one, f"{path}/{key}" if path else key)
    return found


def differences(before: Leaves, after: Leaves) -> list[str]:
    """Return what the recorded state has otherwise than today's.

    A leaf that was not recorded may be there if it has no content: fields are added.
    """
    changed = [
        f"{path}: was {value!r}, is {after.get(path, 'gone')!r}"
        for path, value in before.items()
        if path not in after or after[path] != value
    ]
    added = [
        path
        for path in after.keys() - before.keys() - ADDED
        if after[path] and not path.endswith(ADDED_TO_ROWS)
    ]
    return changed + [f"{path}: was not there, is {after[path]!r}" for path in sorted(added)]
