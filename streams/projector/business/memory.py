"""Business projections in memory, for unit tests and the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from streams.events.model import Json
from streams.payload.port import Scope
from streams.projector.business.port import ListedProjection, StateId, StatesPage
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow

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
        version: int,
        *,
        wanted: Mapping[int, str],
        after: Sequence[Json] | None,
        limit: int,
    ) -> StatesPage:
        """Return the states of up to `limit` keys."""
        by_key: dict[str, list[BusinessStateRow]] = {}
        for one in self._states:
            whose = (one.tenant_id, one.organization_id, one.projection, one.version)
            if whose != (*_names(scope), projection, version) or not _matches(one, wanted):
                continue
            if after is None or _order(one.key_values) > _order(after):
                by_key.setdefault(one.key_digest, []).append(one)
        groups = sorted(by_key.values(), key=lambda rows: _order(rows[0].key_values))
        shown = groups[:limit]
        more = len(groups) > limit
        return StatesPage(
            [one for rows in shown for one in rows], shown[-1][0].key_values if more else None
        )


def _names(scope: Scope) -> tuple[str, str]:
    return scope.tenant_id, scope.organization_id


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
