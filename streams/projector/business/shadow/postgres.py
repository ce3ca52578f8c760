"""Versions of projections in Postgres: each change is one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import asyncpg
import orjson

from streams.payload.port import Scope
from streams.postgres import translated
from streams.projector.business.port import Places
from streams.projector.business.postgres import PostgresBusiness, query, version_of
from streams.projector.business.shadow.core import VersionChange
from streams.projector.business.shadow.port import check_unchanged, switched
from streams.projector.business.versions import ProjectionVersion
from streams.projector.port import ProjectionsUnavailable


class PostgresVersions:
    """Writes as the duty `project`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return the versions of scopes."""
        return await PostgresBusiness(self._pool).versions(scopes)

    async def change(self, change: VersionChange) -> Sequence[ProjectionVersion]:
        """Apply a decision in one transaction."""
        with translated(ProjectionsUnavailable, "change versions of a projection"):
            async with self._pool.acquire() as connection, connection.transaction():
                return await _change(connection, change)


async def _change(
    connection: asyncpg.Connection, change: VersionChange
) -> Sequence[ProjectionVersion]:
    scope = change.scope
    names = (scope.tenant_id, scope.organization_id, change.projection)
    await connection.execute(query("lock_versions"), *names)
    stored = await connection.fetch(query("versions"), *([name] for name in names[:2]))
    found = [version_of(row) for row in stored]
    check_unchanged(change, [one for one in found if one.projection == change.projection])
    after = change.after
    if (switch := change.switch) is not None:
        row = await connection.fetchrow(query("places"), *names, switch.serving, switch.other)
        after = switched(change, switch, Places(**dict(row)))
    if after:
        rows = orjson.dumps([_row(one) for one in after]).decode()
        await connection.execute(query("save_versions"), rows)
    if change.dropped is not None:
        await connection.execute(query("drop_version"), *names, change.dropped)
    return after


def _row(version: ProjectionVersion) -> dict[str, object]:
    return {
        "tenant_id": version.scope.tenant_id,
        "organization_id": version.scope.organization_id,
        "projection": version.projection,
        "version": version.version,
        "status": version.status,
        "declaration": version.declaration,
        "declaration_digest": version.digest,
        "changed_at": version.changed_at,
        "cutover_position": version.cutover_position,
    }
