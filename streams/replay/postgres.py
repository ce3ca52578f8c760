"""The log in Postgres, as replay reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import orjson

from streams.events.model import Root
from streams.log.errors import LogUnavailable
from streams.payload.port import Scope
from streams.postgres import queries, translated
from streams.projector.rows import SnapshotRow
from streams.replay.organization import LogEnd
from streams.replay.port import LogHead, StoredEvent

query = queries("streams.replay")
SETTLE_S = 10.0
SETTLE_POLL_S = 0.01


class PostgresStoredLog:
    """Reads events through a pool of the duty `read`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root."""
        rows = await self._fetch("head", root.id, root.type)
        if not rows:
            return None
        (row,) = rows
        return LogHead(Scope(row["tenant_id"], row["organization_id"]), row["seq"], row["chain"])

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`."""
        rows = await self._fetch("page", root.id, root.type, after_seq, through_seq, limit)
        return [StoredEvent(*row) for row in rows]

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return the place of an event in its root."""
        rows = await self._fetch("seq_of_event", root.id, root.type, event_id)
        return rows[0]["seq"] if rows else None

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return the last place that was stored at `at` or before."""
        moment = at.astimezone(UTC).replace(tzinfo=None)
        rows = await self._fetch("seq_at_time", root.id, root.type, moment)
        return rows[0]["seq"] if rows else 0

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return the newest snapshot of a root at or below a place."""
        rows = await self._fetch("snapshot", root.type, str(root.id), through_seq)
        if not rows:
            return None
        found = dict(rows[0])
        for name in ("upcaster_versions", "encryption_context"):
            found[name] = orjson.loads(found[name])
        return SnapshotRow(**found)

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return the last place of a root at or below a position of the whole log."""
        rows = await self._fetch("seq_at_position", root.id, root.type, position)
        return rows[0]["seq"] if rows else 0

    async def settled(self) -> LogEnd:
        """Return the end of the log, once all transactions that were running have ended."""
        (row,) = await self._fetch("settled")
        end = LogEnd(row["position"], row["time"].replace(tzinfo=UTC))
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        while (await self._fetch("running", row["xmax"]))[0]["running"]:
            if asyncio.get_running_loop().time() > deadline:
                raise LogUnavailable(
                    f"a transaction of the database has been running for over {SETTLE_S:.0f} s, so "
                    "the log may still get events before the cut; end it (pg_stat_activity shows "
                    "it by backend_xid) or ask for an earlier moment of one execution"
                )
            await asyncio.sleep(SETTLE_POLL_S)
        return end

    async def executions(self, scope: Scope, *, after_id: int, limit: int) -> Sequence[int]:
        """Return ids of executions above `after_id`, in order."""
        rows = await self._fetch(
            "executions", scope.tenant_id, scope.organization_id, after_id, limit
        )
        return [row["root_id"] for row in rows]

    async def _fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "read the log"):
            return list(await self._pool.fetch(query(name), *arguments))
