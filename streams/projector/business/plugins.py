"""Projections of other packages: objects of the entry-point group `streams.projections`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Literal, Protocol

import orjson

from streams.errors import PoisonRecord, Refused
from streams.events.model import Json
from streams.playbook.declarations import Source
from streams.projector.business.port import SourceRow

GROUP = "streams.projections"


class BadProjection(Refused):
    """A package's projection cannot be used."""


class RowsNotFolded(PoisonRecord):
    """A package's projection failed on rows."""


class ProjectionPlugin(Protocol):
    """A projection by key, of another package: pure.

    `merge` joins states of disjoint rows, in any order with the same outcome, and folding rows in
    parts and merging must equal folding them together. States are JSON; readers see the fields of
    a mapping as columns.
    """

    name: str
    version: int
    source: Mapping[str, str]
    """`{"step": NAME}` or `{"event": TYPE}`, of every playbook."""
    key: Sequence[str]

    def evolve(self, state: Json, row: Mapping[str, object]) -> Json:
        """Return the state after a row; the first one follows None."""
        ...

    def merge(self, one: Json, other: Json) -> Json:
        """Return the state of the rows of both."""
        ...


@dataclass(frozen=True, slots=True)
class PluginFold:
    """The fold of a package's projection."""

    plugin: ProjectionPlugin
    name: str
    version: int
    source: Source
    key: tuple[str, ...]

    @property
    def columns(self) -> frozenset[str]:
        """The columns of its key: what else it reads is not known."""
        return frozenset(self.key)

    def describe(self) -> Mapping[str, Json]:
        """Return its declaration as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "source": {self.source.kind: self.source.name},
            "key": list(self.key),
            "plugin": f"{type(self.plugin).__module__}.{type(self.plugin).__qualname__}",
        }

    def accepts(self, row: Mapping[str, object]) -> bool:
        """Return True: it filters in `evolve`."""
        return True

    def fold(self, rows: Sequence[SourceRow]) -> Json:
        """Return the state of rows.

        Raises:
            RowsNotFolded: it failed.
        """
        state: Json = None
        try:
            for row in rows:
                state = self.plugin.evolve(state, row.values)
            orjson.dumps(state)
        except Exception as error:  # the code of others: no failure of it may stop the projector
            raise self._failed("evolve", error) from error
        return state

    def merge(self, one: Json, other: Json) -> Json:
        """Return the state of the rows of both.

        Raises:
            RowsNotFolded: it failed.
        """
        try:
            state = self.plugin.merge(one, other)
            orjson.dumps(state)
        except Exception as error:
            raise self._failed("merge", error) from error
        return state

    def result(self, state: Json) -> Mapping[str, Json]:
        """Return the state's fields; another state is the column `value`."""
        return state if isinstance(state, dict) else {"value": state}

    def _failed(self, method: str, error: Exception) -> RowsNotFolded:
        return RowsNotFolded(f"{method} of {self.name} failed: {type(error).__name__}: {error}")


def plugin_fold(plugin: ProjectionPlugin) -> PluginFold:
    """Return the fold of a plug-in.

    Raises:
        BadProjection: its name, version, source or key is not valid.
    """
    kinds: tuple[Literal["step", "event"], ...] = ("step", "event")
    source = [Source(kind, plugin.source[kind]) for kind in kinds if kind in plugin.source]
    if len(source) != 1 or not plugin.key or not plugin.name or plugin.version < 1:
        raise BadProjection(
            f"{GROUP}: {plugin.name!r} needs a name, a version from 1, a key, and a source of "
            "either step or event"
        )
    return PluginFold(plugin, plugin.name, plugin.version, source[0], tuple(plugin.key))


@lru_cache(maxsize=1)
def installed() -> tuple[PluginFold, ...]:
    """Return the projections of installed packages.

    Raises:
        BadProjection: one cannot be loaded, or is not valid.
    """
    found = []
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        try:
            found.append(plugin_fold(entry.load()))
        except (ImportError, AttributeError, TypeError) as error:
            raise BadProjection(f"{GROUP}: {entry.name} ({entry.value}): {error}") from error
    return tuple(found)
