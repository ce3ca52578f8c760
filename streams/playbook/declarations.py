"""Declarations of business projections, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

import orjson
from blake3 import blake3

from streams.events.model import Json
from streams.events.types import ALL

Function = Literal["count", "sum", "min", "max", "last", "distinct"]
FUNCTIONS: tuple[Function, ...] = get_args(Function)
ROWS = "*"
"""The column of `count` that stands for whole rows."""
OF_EVERY_EVENT = ("execution_id", "event_id", "event_time")
"""Columns of every event, besides the fields of its type."""
_FIELDS: Mapping[str, tuple[str, ...]] = {
    one.TYPE: tuple(field.name for field in fields(one)) for one in ALL
}


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows of a projection come from."""

    kind: Literal["step", "event"]
    name: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One computed column."""

    name: str
    function: Function
    column: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A business projection, as data."""

    name: str
    version: int
    source: Source
    key: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    where: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        read_by = {one.column for one in self.aggregates} - {ROWS}
        return frozenset({*self.key, *self.where, *read_by})

    def to_json(self) -> dict[str, Json]:
        """Return the declaration as JSON, the same for equal declarations."""
        made: dict[str, Json] = {
            "name": self.name,
            "version": self.version,
            "source": {self.source.kind: self.source.name},
            "key": list(self.key),
            "aggregates": {one.name: {one.function: one.column} for one in self.aggregates},
        }
        if self.where:
            made["where"] = {column: list(values) for column, values in self.where.items()}
        return made


def declaration_digest(declaration: Mapping[str, Json]) -> str:
    """Return the digest of a declaration's JSON."""
    return blake3(orjson.dumps(declaration, option=orjson.OPT_SORT_KEYS)).hexdigest()


def event_columns(event_type: str) -> tuple[str, ...]:
    """Return the columns of a type of event; empty if the catalogue has no such type."""
    own = _FIELDS.get(event_type)
    return () if own is None else (*OF_EVERY_EVENT, *own)
