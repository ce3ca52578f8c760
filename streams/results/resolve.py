"""Which data of a result that lives elsewhere is needed, and the result with it put in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streams.events.model import PayloadRef
from streams.payload.port import Scope
from streams.playbook.template_compiler import list_positions
from streams.playbook.views import wants_data, wants_task
from streams.results.references import data_of
from streams.results.spilled import names_in, sought

Keys = Collection[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Missing:
    """Data that is not at hand: of the step's own result, or of the task with this label."""

    task: str | None
    ref: PayloadRef
    store: str
    places: frozenset[int] | None = None
    """Where rows of a loop are named by their places only: which. None: all of it is needed."""


def keys_from(name: str, ways: Keys) -> list[Sequence[str]]:
    """Return where templates go from `name`."""
    return [way[1:] for way in ways if way[0] == name]


def missing(envelope: Mapping[str, Any], keys: Keys, owner: Scope) -> Iterator[Missing]:
    """Yield the data that these ways into a result lead to and that is not in it."""
    if any(wants_data(one, envelope) for one in keys):
        for gap in _elsewhere(None, envelope, owner):
            yield replace(gap, places=_places(envelope, keys))
    for label, one in (envelope.get("tasks") or {}).items():
        if one is not None and any(wants_task(key, label, one) for key in keys):
            yield from _elsewhere(label, one, owner)


def tasks_sought(
    envelope: Mapping[str, Any], keys: Keys, owner: Scope
) -> Iterator[tuple[list[str], PayloadRef]]:
    """Yield the payloads that hold what a result tells of tasks which these ways lead to."""
    groups = envelope.get("tasks_elsewhere") or ()
    inner = [key[1:] if key and key[0] == "result" else key for key in keys]
    return sought(groups, names_in(inner), owner)


def with_tasks(envelope: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what it tells of these tasks put in."""
    whole = {k: v for k, v in envelope.items() if k != "tasks_elsewhere"}
    return {**whole, "tasks": {**(envelope.get("tasks") or {}), **found}} if found else whole


def filled(envelope: Mapping[str, Any], found: Mapping[str | None, Any]) -> dict[str, Any]:
    """Return a result with data put in, by the task it is of; None is the step's own."""
    whole = {k: v for k, v in envelope.items() if k != "_ref"}
    for task, data in found.items():
        if task is None:
            whole["data"] = data
        else:
            whole["tasks"] = {**whole["tasks"], task: {**whole["tasks"][task], "data": data}}
    return whole


def _places(envelope: Mapping[str, Any], keys: Keys) -> frozenset[int] | None:
    """Return the places of a loop's rows that templates name; None: they do not say."""
    if "counts" not in envelope:
        return None
    places: set[int] = set()
    for key in keys:
        if not wants_data(key, envelope):
            continue
        found = list_positions(key[1]) if len(key) > 1 and key[0] in ("data", "result") else None
        if found is None:
            return None
        places.update(found)
    return frozenset(places)


def _elsewhere(task: str | None, envelope: Mapping[str, Any], owner: Scope) -> Iterator[Missing]:
    ref = data_of(envelope, owner)
    if ref is not None:
        yield Missing(task, ref, str((envelope.get("ref") or {}).get("store", "object")))
