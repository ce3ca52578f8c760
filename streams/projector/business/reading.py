"""Reading of business projections: the states of all executions of a scope, merged by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import orjson

from streams.errors import Refused
from streams.events.model import Json
from streams.payload.port import Scope
from streams.projector.business.declared_fold import skipped_values
from streams.projector.business.maintained import fold_of
from streams.projector.business.plugins import PluginFold
from streams.projector.business.port import (
    BusinessReader,
    KeyedFold,
    ListedProjection,
    ReadableBusiness,
)
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

    def __init__(self, reader: ReadableBusiness, plugins: Iterable[PluginFold] = ()) -> None:
        self._reader = reader
        self._plugins = {(one.name, one.version): one for one in plugins}

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections of a scope.

        Raises:
            Unavailable: the store cannot be reached.
        """
        async with self._reader.snapshot() as reader:
            return await _listed(reader, scope)

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
        """Return rows by key; without a version, of the one that serves, else of the newest.

        Raises:
            NoSuchProjection: none has this name and version.
            AmbiguousProjection: playbooks declare it differently.
            BadFilter: a filter does not name a column of the key.
            Unavailable: the store cannot be reached.
        """
        async with self._reader.snapshot() as reader:
            listed = await _listed(reader, scope)
            if after is not None and version is None:
                _refuse_switched(listed, name)
            found = _chosen(listed, name, version)
            fold = self.fold(found.name, found.version, found.declaration)
            wanted = _wanted(fold, filters or {})
            if after is not None and len(after) != len(fold.key):
                raise BadFilter(f"`after` has {len(after)} values, and the key has {len(fold.key)}")
            page = await reader.page(
                scope, found.name, [found.version], wanted=wanted, after=after, limit=limit
            )
        groups = groupby(page.states, key=lambda one: one.key_digest)
        rows = [merged_row(fold, list(states)) for _, states in groups]
        return MergedPage(found, rows, page.next)

    def fold(self, name: str, version: int, declaration: Mapping[str, Json]) -> KeyedFold:
        """Return the fold of a stored declaration.

        Raises:
            NoSuchProjection: it is the code of a package that is not installed.
        """
        declared = fold_of(declaration)
        if declared is not None:
            return declared
        plugin = self._plugins.get((name, version))
        if plugin is None:
            raise NoSuchProjection(
                name, version, [f"{one} version {n}" for one, n in self._plugins]
            )
        return plugin


async def _listed(reader: BusinessReader, scope: Scope) -> list[ListedProjection]:
    versions = {(one.projection, one.version): one for one in await reader.versions([scope])}
    return [
        one if known is None else one._replace(status=known.status)
        for one in await reader.projections(scope)
        for known in (versions.get((one.name, one.version)),)
    ]


def _refuse_switched(listed: Sequence[ListedProjection], name: str) -> None:
    """Refuse a further page if readers may have been switched since the first one."""
    if any(one.name == name and one.status is not None for one in listed):
        raise BadFilter(
            f"projection {name!r} has several versions: ask for further pages with the `version` "
            "of the first one, so that all are of one version"
        )


def _chosen(listed: Sequence[ListedProjection], name: str, version: int | None) -> ListedProjection:
    named = [one for one in listed if one.name == name]
    serving = [one.version for one in named if one.status == "serving"]
    usual = max(serving or [one.version for one in named], default=0)
    found = [one for one in named if one.version == (usual if version is None else version)]
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


def merged_row(fold: KeyedFold, states: Sequence[BusinessStateRow]) -> MergedRow:
    """Return the row of the states of one key."""
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
