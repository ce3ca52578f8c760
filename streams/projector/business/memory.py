"""Business projections in memory, for unit tests and the simulator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING

from streams.events.model import Json
from streams.payload.port import Scope
from streams.projector.business.port import ListedProjection, Places, StateId, StatesPage
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.versions import ProjectionVersion

if TYPE_CHECKING:
    from streams.projector.memory import MemoryProjections


class MemoryBusiness:
    """Reads what a store in memory has."""

    def __init__(self, store: MemoryProjections) -> None:
        self._store = store

    @property
    def _states(self) -> list[BusinessStateRow]:
        return [one for one in self._store.rows.values() if isinstance(one, BusinessStateRow)]

    @property
    def _progress(self) -> list[BusinessProgressRow]:
        return [one for one in self._store.rows.values() if isinstance(one, BusinessProgressRow)]

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[MemoryBusiness]:
        """Return a reader of what there is now."""
        taken = MemoryBusiness(copy(self._store))
        taken._store.rows = dict(self._store.rows)
        taken._store.versions = dict(self._store.versions)
        yield taken

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return the versions of scopes."""
        wanted = frozenset(scopes)
        found = [one for one in self._store.versions.values() if one.scope in wanted]
        return sorted(found, key=lambda one: (one.projection, one.version))

    async def places(self, scope: Scope, projection: str, served: int, other: int) -> Places:
        """Return how far two versions were folded."""
        of_served, of_other = (
            {one.execution_id: one for one in self._of(scope, projection, version)}
            for version in (served, other)
        )
        apart = [
            one
            for one in sorted({*of_served, *of_other})
            if _seq(of_served.get(one)) != _seq(of_other.get(one))
        ]
        return Places(
            len(of_served),
            max((one.last_position for one in of_served.values()), default=0),
            sum(_seq(of_other.get(one)) < _seq(row) for one, row in of_served.items()),
            len(apart),
            apart[0] if apart else None,
        )

    async def progress_page(
        self, scope: Scope, projection: str, version: int, *, after_id: int, limit: int
    ) -> Sequence[BusinessProgressRow]:
        """Return how far a version was folded, by execution."""
        found = sorted(self._of(scope, projection, version), key=lambda one: one.execution_id)
        return [one for one in found if one.execution_id > after_id][:limit]

    async def states_of(
        self, execution_id: int, projection: str, version: int
    ) -> Sequence[BusinessStateRow]:
        """Return all states of a version of one execution."""
        wanted = (execution_id, projection, version)
        return [one for one in self._states if one.key[:3] == wanted]

    def _of(self, scope: Scope, projection: str, version: int) -> list[BusinessProgressRow]:
        wanted = (*_names(scope), projection, version)
        return [
            one
            for one in self._progress
            if (one.tenant_id, one.organization_id, one.projection, one.version) == wanted
        ]

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections of executions were folded."""
        wanted = frozenset(execution_ids)
        return [one for one in self._progress if one.execution_id in wanted]

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        wanted = frozenset(ids)
        return [one for one in self._states if one.key in wanted]

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections, by name and version."""
        found: dict[tuple[str, int, str], list[BusinessProgressRow]] = {}
        for one in self._progress:
            if (one.tenant_id, one.organization_id) == (scope.tenant_id, scope.organization_id):
                found.setdefault((one.projection, one.version, one.declaration_digest), []).append(
                    one
                )
        return [
            ListedProjection(
                name,
                version,
                rows[0].declaration,
                digest,
                len(rows),
                sum(bool(one.problems) for one in rows),
                max(one.last_position for one in rows),
            )
            for (name, version, digest), rows in sorted(found.items())
        ]

    async def page(
        self,
        scope: Scope,
        projection: str,
        versions: Sequence[int],
        *,
        wanted: Mapping[int, str],
        after: Sequence[Json] | None,
        limit: int,
    ) -> StatesPage:
        """Return the states of up to `limit` keys."""
        by_key: dict[str, list[BusinessStateRow]] = {}
        for one in self._states:
            whose = (one.tenant_id, one.organization_id, one.projection)
            if whose != (*_names(scope), projection) or one.version not in versions:
                continue
            if not _matches(one, wanted):
                continue
            if after is None or _order(one.key_values) > _order(after):
                by_key.setdefault(one.key_digest, []).append(one)
        groups = sorted(by_key.values(), key=lambda rows: _order(rows[0].key_values))
        shown = groups[:limit]
        more = len(groups) > limit
        return StatesPage(
            [one for rows in shown for one in sorted(rows, key=_place)],
            shown[-1][0].key_values if more else None,
        )


def _names(scope: Scope) -> tuple[str, str]:
    return scope.tenant_id, scope.organization_id


def _seq(row: BusinessProgressRow | None) -> int:
    return 0 if row is None else row.last_seq


def _place(row: BusinessStateRow) -> tuple[int, int]:
    return row.version, row.execution_id


def _matches(row: BusinessStateRow, wanted: Mapping[int, str]) -> bool:
    return all(_text(row.key_values[at]) == text for at, text in wanted.items())


def _text(value: Json) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


def _order(key: Sequence[Json]) -> list[tuple[int, int | str]]:
    """Return the order of keys, as jsonb has it: null, texts, numbers, booleans."""
    return [_part(value) for value in key]


def _part(value: Json) -> tuple[int, int | str]:
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (3, int(value))
    return (2, value) if isinstance(value, int) else (1, str(value))
