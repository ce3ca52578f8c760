"""Reading of business projections: the states of all executions of a scope, merged by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import orjson

from streams.errors import Refused
from streams.events.model import Json
from streams.payload.port import Scope
from streams.playbook.projections import declaration_from
from streams.projector.business.declared_fold import DeclaredFold, skipped_values
from streams.projector.business.plugins import PluginFold
from streams.projector.business.port import BusinessReader, KeyedFold, ListedProjection
from streams.projector.business.rows import BusinessStateRow

MAX_PAGE = 1000


class NoSuchProjection(Refused):
    """There is no such projection in the scope."""

    def __init__(self, name: str, version: int | None, known: Iterable[str]) -> None:
        what = f"projection {name!r}" + ("" if version is None else f" version {version}")
        known = ", ".join(sorted(known)) or "none yet: they appear with their first execution"
        super().__init__(f"{what} does not exist here; there are {known}")


class AmbiguousProjection(Refused):
    """Different declarations have one name and version."""


class BadFilter(Refused):
    """A filter or the place of a page does not fit the key."""


@dataclass(frozen=True, slots=True)
class MergedRow:
    """One key over all executions: its columns, and where they come from."""

    key: Mapping[str, Json]
    values: Mapping[str, Json]
    skipped: Mapping[str, int]
    """Values that an aggregate left out, as they were of the wrong kind."""
    row_count: int
    executions: int
    first_position: int
    last_position: int


@dataclass(frozen=True, slots=True)
class MergedPage:
    """Some rows of a projection, in the order of their keys."""

    projection: ListedProjection
    rows: Sequence[MergedRow]
    next: list[Json] | None


class BusinessQueries:
    """Answers queries by name; states are merged when they are read."""

    def __init__(self, reader: BusinessReader, plugins: Iterable[PluginFold] = ()) -> None:
        self._reader = reader
        self._plugins = {(one.name, one.version): one for one in plugins}

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections of a scope.

        Raises:
            Unavailable: the store cannot be reached.
        """
        return await self._reader.projections(scope)

    async def page(
        self,
        scope: Scope,
        name: str,
        *,
        version: int | None = None,
        filters: Mapping[str, str] | None = None,
        after: Sequence[Json] | None = None,
        limit: int = 100,
    ) -> MergedPage:
        """Return rows by key; without a version, of the newest one.

        Raises:
            NoSuchProjection: none has this name and version.
            AmbiguousProjection: playbooks declare it differently.
            BadFilter: a filter does not name a column of the key.
            Unavailable: the store cannot be reached.
        """
        found = _chosen(await self._reader.projections(scope), name, version)
        fold = self._fold(found)
        wanted = _wanted(fold, filters or {})
        if after is not None and len(after) != len(fold.key):
            raise BadFilter(f"`after` has {len(after)} values, and the key has {len(fold.key)}")
        page = await self._reader.page(
            scope, found.name, found.version, wanted=wanted, after=after, limit=limit
        )
        groups = groupby(page.states, key=lambda one: one.key_digest)
        rows = [_merged(fold, list(states)) for _, states in groups]
        return MergedPage(found, rows, page.next)

    def _fold(self, found: ListedProjection) -> KeyedFold:
        if "plugin" not in found.declaration:
            declaration = declaration_from(found.declaration)
            assert declaration is not None, "a stored declaration was checked"
            return DeclaredFold(declaration)
        plugin = self._plugins.get((found.name, found.version))
        if plugin is None:
            raise NoSuchProjection(
                found.name, found.version, [f"{name} version {n}" for name, n in self._plugins]
            )
        return plugin


def _chosen(listed: Sequence[ListedProjection], name: str, version: int | None) -> ListedProjection:
    named = [one for one in listed if one.name == name]
    newest = max((one.version for one in named), default=0)
    found = [one for one in named if one.version == (newest if version is None else version)]
    if not found:
        raise NoSuchProjection(name, version, {one.name for one in listed})
    if len(found) > 1:
        raise AmbiguousProjection(
            f"projection {name!r} version {found[0].version}: {len(found)} declarations have this "
            "name and version; give one of them another name, or raise its version"
        )
    return found[0]


def _wanted(fold: KeyedFold, filters: Mapping[str, str]) -> dict[int, str]:
    for column in filters:
        if column not in fold.key:
            raise BadFilter(f"{column!r} is not in the key; filter by {', '.join(fold.key)}")
    return {fold.key.index(column): text for column, text in filters.items()}


def _merged(fold: KeyedFold, states: Sequence[BusinessStateRow]) -> MergedRow:
    state = orjson.loads(states[0].state)
    for one in states[1:]:
        state = fold.merge(state, orjson.loads(one.state))
    return MergedRow(
        key=dict(zip(fold.key, states[0].key_values, strict=True)),
        values=fold.result(state),
        skipped=skipped_values(fold, state),
        row_count=sum(one.row_count for one in states),
        executions=len({one.execution_id for one in states}),
        first_position=min(one.first_position for one in states),
        last_position=max(one.last_position for one in states),
    )
