"""The fold of a playbook's declaration: one aggregate beside the other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.events.model import Json
from streams.playbook.declarations import ROWS, Aggregate, Declaration, Source
from streams.projector.business.aggregates import OF, Located
from streams.projector.business.port import KeyedFold, SourceRow
from streams.projector.business.values import identity


@dataclass(frozen=True, slots=True)
class DeclaredFold:
    """The fold of a playbook's declaration."""

    declaration: Declaration
    _wanted: Mapping[str, frozenset[str | None]] = field(init=False)

    def __post_init__(self) -> None:
        wanted = {
            column: frozenset(None if one is None else identity(one) for one in values)
            for column, values in self.declaration.where.items()
        }
        object.__setattr__(self, "_wanted", wanted)

    @property
    def name(self) -> str:
        """Its name."""
        return self.declaration.name

    @property
    def version(self) -> int:
        """Its version."""
        return self.declaration.version

    @property
    def source(self) -> Source:
        """Where its rows come from."""
        return self.declaration.source

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its key."""
        return self.declaration.key

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        return self.declaration.columns

    def describe(self) -> Mapping[str, Json]:
        """Return its declaration as JSON."""
        return self.declaration.to_json()

    def accepts(self, row: Mapping[str, object]) -> bool:
        """Return whether the row passes `where`."""
        for column, wanted in self._wanted.items():
            value = row.get(column)
            if (None if value is None else identity(value)) not in wanted:
                return False
        return True

    def fold(self, rows: Sequence[SourceRow]) -> Json:
        """Return the state of each aggregate."""
        return {
            one.name: OF[one.function].fold(_values(one, rows))
            for one in self.declaration.aggregates
        }

    def merge(self, one: Json, other: Json) -> Json:
        """Return the state of the rows of both."""
        first, second = _fields(one), _fields(other)
        return {
            made.name: OF[made.function].merge(first[made.name], second[made.name])
            for made in self.declaration.aggregates
        }

    def result(self, state: Json) -> Mapping[str, Json]:
        """Return the value of each aggregate."""
        states = _fields(state)
        return {
            one.name: OF[one.function].result(states[one.name])
            for one in self.declaration.aggregates
        }


def skipped_values(fold: KeyedFold, state: Json) -> dict[str, int]:
    """Return how many values each aggregate left out, as they were of the wrong kind."""
    if not isinstance(fold, DeclaredFold):
        return {}
    parts = _fields(state).items()
    return {name: part["skipped"] for name, part in parts if part.get("skipped")}


def _values(aggregate: Aggregate, rows: Sequence[SourceRow]) -> list[Located]:
    if aggregate.column == ROWS:
        return [Located((row.position, row.row), True) for row in rows]
    return [
        Located((row.position, row.row), value)
        for row in rows
        if (value := row.values.get(aggregate.column)) is not None
    ]


def _fields(state: Json) -> dict[str, Any]:
    assert isinstance(state, dict), "a state of declared aggregates is a mapping"
    return state
