"""The projection reader in Postgres, with a read-only login."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg

from streams.api.port import Head, Row
from streams.events.model import Root
from streams.log.errors import LogUnavailable
from streams.payload.port import Scope
from streams.postgres import queries, translated

query = queries("streams.api")


class PostgresProjectionReader:
    """Reads the projections through a connection pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def head(self, root: Root) -> Head | None:
        """Return a root's head, or None where there is no such root."""
        row = await self._one("head", root.id, root.type)
        if row is None:
            return None
        scope = Scope(row["tenant_id"], row["organization_id"])
        return Head(scope, row["seq"], row["terminal"])

    async def execution(self, execution_id: int) -> Row | None:
        """Return an execution's row."""
        return await self._one("execution", execution_id)

    async def executions(
        self, scope: Scope, *, status: str | None, path: str | None, before: int, limit: int
    ) -> Sequence[Row]:
        """Return executions with a lower id than `before`, the newest first."""
        whose = (scope.tenant_id, scope.organization_id)
        return await self._rows("executions", *whose, status, path, before, limit)

    async def parts(self, execution_id: int) -> Mapping[str, Sequence[Row]]:
        """Return an execution's stages, and its commands that have not ended."""
        return {
            "stages": await self._rows("stages", execution_id),
            "commands": await self._rows("open_commands", execution_id),
        }

    async def stage(self, stage_id: int) -> Row | None:
        """Return a stage's row."""
        return await self._one("stage", stage_id)

    async def frame(self, frame_id: int) -> Row | None:
        """Return a frame's row."""
        return await self._one("frame", frame_id)

    async def command(self, command_id: int) -> Row | None:
        """Return a command's row."""
        return await self._one("command", command_id)

    async def waiting_frames(self, stage_id: int, limit: int) -> Sequence[Row]:
        """Return frames that wait for a worker, in the order of the stage."""
        return await self._rows("waiting_frames", stage_id, limit)

    async def held_frames(self, stage_id: int, worker: str) -> int:
        """Return how many frames of a stage a worker holds."""
        row = await self._one("held_frames", stage_id, worker)
        return 0 if row is None else int(row["count"])

    async def waiting_commands(
        self, scope: Scope, pool: str, tools: Sequence[str], limit: int
    ) -> Sequence[Row]:
        """Return commands that wait for a worker, the oldest first; no tools means any."""
        whose = (scope.tenant_id, scope.organization_id)
        return await self._rows("waiting_commands", *whose, pool, list(tools), limit)

    async def _one(self, name: str, *arguments: object) -> Row | None:
        rows = await self._rows(name, *arguments)
        return rows[0] if rows else None

    async def _rows(self, name: str, *arguments: object) -> list[Row]:
        with translated(LogUnavailable, "read the projections"):
            return [dict(row) for row in await self._pool.fetch(query(name), *arguments)]
