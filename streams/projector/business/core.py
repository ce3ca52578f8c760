"""Fold of rows into the states of a business projection. Pure: no clock, no database.

Live projectors and replay both use it; there is no other. The rows of one event are folded
together, once: a key that has absorbed the event ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
from blake3 import blake3

from streams.errors import PoisonRecord
from streams.events.model import Event, Json
from streams.playbook.declarations import declaration_digest
from streams.projector.business.port import KeyedFold, SourceRow
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.values import key_digest, key_value

MOST_PROBLEMS = 100
"""Different problems of one projection of one execution that are listed."""


class Delta(NamedTuple):
    """What the rows of one event add to one key."""

    key: list[Json]
    state: Json
    row_count: int


class EventDeltas(NamedTuple):
    """What one event adds to a projection: states by the digest of their key, and problems."""

    deltas: Mapping[str, Delta]
    problems: tuple[Mapping[str, Json], ...] = ()


def fold_rows(fold: KeyedFold, rows: Iterable[SourceRow]) -> dict[str, Delta]:
    """Return what rows of one event, in order, add to each key."""
    keys: dict[str, list[Json]] = {}
    groups: dict[str, list[SourceRow]] = {}
    for row in rows:
        if not fold.accepts(row.values):
            continue
        key = [key_value(row.values.get(column)) for column in fold.key]
        digest = key_digest(key)
        keys.setdefault(digest, key)
        groups.setdefault(digest, []).append(row)
    return {
        digest: Delta(keys[digest], fold.fold(group), len(group))
        for digest, group in groups.items()
    }


class ExecutionFold:
    """One projection of one execution while events are folded into it, in order of `seq`."""

    def __init__(self, fold: KeyedFold, progress: BusinessProgressRow) -> None:
        self.fold, self.progress = fold, progress
        self.states: dict[str, BusinessStateRow] = {}
        """The states that were stored before, and those that changed."""
        self.changed: set[str] = set()

    def absorb(self, event: Event, added: EventDeltas | None) -> None:
        """Fold an event; None: it has nothing for this projection."""
        if event.seq <= self.progress.last_seq:
            return
        problems = self.progress.problems
        if added is not None:
            problems = with_problems(problems, added.problems)
            for digest, delta in added.deltas.items():
                try:
                    self._add(event, digest, delta)
                except PoisonRecord as error:
                    problems = with_problems(problems, [problem(event, str(error))])
        self.progress = replace(
            self.progress, problems=problems, last_seq=event.seq, last_position=event.position
        )

    def _add(self, event: Event, digest: str, delta: Delta) -> None:
        known = self.states.get(digest)
        if known is None:
            self.states[digest] = _first_state(self.progress, event, digest, delta)
        elif event.seq > known.last_seq:
            self.states[digest] = replace(
                known,
                state=canonical(self.fold.merge(orjson.loads(known.state), delta.state)),
                row_count=known.row_count + delta.row_count,
                last_seq=event.seq,
                last_position=event.position,
            )
        else:
            return
        self.changed.add(digest)


def blank(fold: KeyedFold, event: Event) -> BusinessProgressRow:
    """Return the progress of a projection before the first event of its execution."""
    declaration = dict(fold.describe())
    return BusinessProgressRow(
        execution_id=event.root.id,
        projection=fold.name,
        version=fold.version,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        declaration=declaration,
        declaration_digest=declaration_digest(declaration),
        problems=[],
        last_seq=0,
        last_position=0,
    )


def problem(event: Event, what: str, object_uri: str | None = None) -> dict[str, Json]:
    """Return a problem of an event's rows, and the object that has it."""
    return {"what": what, "object": object_uri, "seq": event.seq}


def with_problems(
    known: list[dict[str, Json]], found: Iterable[Mapping[str, Json]]
) -> list[dict[str, Json]]:
    """Return problems with more of them; equal ones are counted, and keep their first seq."""
    made = {(one["what"], one["object"]): one for one in known}
    for one in found:
        name = (one["what"], one["object"])
        if name not in made and len(made) >= MOST_PROBLEMS:
            name = ("further problems", None)
        before = made.get(name)
        first = {"what": name[0], "object": name[1], "seq": one["seq"], "count": 0}
        entry: dict[str, Any] = dict(before or first)
        entry["count"] += 1
        made[name] = entry
    return list(made.values())


def _first_state(
    progress: BusinessProgressRow, event: Event, digest: str, delta: Delta
) -> BusinessStateRow:
    return BusinessStateRow(
        execution_id=progress.execution_id,
        projection=progress.projection,
        version=progress.version,
        key_digest=digest,
        tenant_id=progress.tenant_id,
        organization_id=progress.organization_id,
        key_values=delta.key,
        state=canonical(delta.state),
        row_count=delta.row_count,
        first_seq=event.seq,
        last_seq=event.seq,
        first_position=event.position,
        last_position=event.position,
    )


def checksum_of(progress: BusinessProgressRow, states: Iterable[BusinessStateRow]) -> str:
    """Return the checksum of a projection of an execution: of its states and problems."""
    rows = sorted(states, key=lambda one: one.key_digest)
    value = [progress.declaration_digest, progress.problems, [state_checksum(one) for one in rows]]
    return blake3(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def canonical(state: Json) -> str:
    """Return the one text of a state."""
    return orjson.dumps(state, option=orjson.OPT_SORT_KEYS).decode()


def state_checksum(state: BusinessStateRow) -> str:
    """Return the checksum of a state, as stored beside it."""
    return blake3(orjson.dumps(state, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)).hexdigest()
