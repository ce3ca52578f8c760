"""Business projections in Postgres: stored states, and pages of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import asyncpg
import orjson

from streams.events.model import Json
from streams.payload.port import Scope
from streams.postgres import queries, translated
from streams.projector.business.port import ListedProjection, Places, StateId, StatesPage
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.versions import ProjectionVersion
from streams.projector.port import ProjectionsUnavailable

query = queries("streams.projector.business")


class Queried(Protocol):
    """A pool, or a connection of one."""

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """Return all rows."""
        ...


class PostgresBusiness:
    """Reads through a pool of any login that may read the tables."""

    def __init__(self, pool: Queried) -> None:
        self._pool = pool

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresBusiness]:
        """Return a reader in a transaction that sees one moment."""
        assert isinstance(self._pool, asyncpg.Pool), "a snapshot has no snapshots"
        with translated(ProjectionsUnavailable, "read business projections"):
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield PostgresBusiness(connection)

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return the versions of scopes."""
        found = list(scopes)
        tenants = [one.tenant_id for one in found]
        organizations = [one.organization_id for one in found]
        return [version_of(row) for row in await self._rows("versions", tenants, organizations)]

    async def places(self, scope: Scope, projection: str, served: int, other: int) -> Places:
        """Return how far two versions were folded."""
        names = (scope.tenant_id, scope.organization_id, projection, served, other)
        (row,) = await self._rows("places", *names)
        return Places(**dict(row))

    async def progress_page(
        self, scope: Scope, projection: str, version: int, *, after_id: int, limit: int
    ) -> Sequence[BusinessProgressRow]:
        """Return how far a version was folded, by execution."""
        names = (scope.tenant_id, scope.organization_id, projection, version)
        return [
            _progress(row) for row in await self._rows("progress_page", *names, after_id, limit)
        ]

    async def states_of(
        self, execution_id: int, projection: str, version: int
    ) -> Sequence[BusinessStateRow]:
        """Return all states of a version of one execution."""
        return [
            _state(row) for row in await self._rows("states_of", execution_id, projection, version)
        ]

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
        versions: Sequence[int],
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
            list(versions),
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
            return await self._pool.fetch(query(name), *arguments)


def _progress(row: asyncpg.Record) -> BusinessProgressRow:
    values = dict(row)
    for name in ("declaration", "problems"):
        values[name] = orjson.loads(values[name])
    return BusinessProgressRow(**values)


def _state(row: asyncpg.Record) -> BusinessStateRow:
    values = dict(row)
    return BusinessStateRow(**(values | {"key_values": orjson.loads(values["key_values"])}))


def version_of(row: asyncpg.Record) -> ProjectionVersion:
    """Return a version as stored."""
    return ProjectionVersion(
        scope=Scope(row["tenant_id"], row["organization_id"]),
        projection=row["projection"],
        version=row["version"],
        status=row["status"],
        declaration=orjson.loads(row["declaration"]),
        digest=row["declaration_digest"],
        changed_at=row["changed_at"],
        cutover_position=row["cutover_position"],
    )
