"""Business projections in Postgres: stored states, and pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import asyncpg
import orjson

from streams.events.model import Json
from streams.payload.port import Scope
from streams.postgres import queries, translated
from streams.projector.business.port import ListedProjection, StateId, StatesPage
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.port import ProjectionsUnavailable

query = queries("streams.projector.business")


class PostgresBusiness:
    """Reads through a pool of any login that may read the tables."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def progress(self, execution_ids: Iterable[int]) -> Sequence[BusinessProgressRow]:
        """Return how far the projections of executions were folded."""
        return [_progress(row) for row in await self._rows("progress", list(execution_ids))]

    async def states(self, ids: Sequence[StateId]) -> Sequence[BusinessStateRow]:
        """Return the states that exist."""
        columns = [list(column) for column in zip(*ids, strict=True)]
        return [_state(row) for row in await self._rows("states", *columns)]

    async def projections(self, scope: Scope) -> Sequence[ListedProjection]:
        """Return the projections, by name and version."""
        rows = await self._rows("projections", scope.tenant_id, scope.organization_id)
        return [
            ListedProjection(
                name=row["projection"],
                version=row["version"],
                declaration=orjson.loads(row["declaration"]),
                digest=row["declaration_digest"],
                executions=row["executions"],
                problems=row["problems"],
                last_position=row["last_position"],
            )
            for row in rows
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
        rows = await self._rows(
            "page",
            scope.tenant_id,
            scope.organization_id,
            projection,
            version,
            list(wanted),
            list(wanted.values()),
            None if after is None else orjson.dumps(list(after)).decode(),
            limit + 1,
        )
        states = [_state(row) for row in rows]
        digests = list(dict.fromkeys(one.key_digest for one in states))
        if len(digests) <= limit:
            return StatesPage(states, None)
        shown = [one for one in states if one.key_digest != digests[limit]]
        return StatesPage(shown, shown[-1].key_values)

    async def _rows(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(ProjectionsUnavailable, "read business projections"):
            found: list[asyncpg.Record] = await self._pool.fetch(query(name), *arguments)
            return found


def _progress(row: asyncpg.Record) -> BusinessProgressRow:
    values = dict(row)
    for name in ("declaration", "problems"):
        values[name] = orjson.loads(values[name])
    return BusinessProgressRow(**values)


def _state(row: asyncpg.Record) -> BusinessStateRow:
    values = dict(row)
    return BusinessStateRow(**(values | {"key_values": orjson.loads(values["key_values"])}))
