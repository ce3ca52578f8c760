"""Executions that wait: each has one command in a pool that has no worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from streams.app import open_log
from streams.data_folder import layout_of
from streams.dev.bench.executions import Executions, ExecutionStalled
from streams.dev.bench.stored_plans import stored_executions
from streams.events.model import NewEvent, Root
from streams.execution.cancellation import cancelled
from streams.payload.port import Scope
from streams.settings import Settings

PATH, POOL = "bench/waiting", "bench-without-workers"
PLAYBOOK = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: waiting, path: {PATH}}}
workflow:
  - step: start
    pool: {POOL}
    tool: {{kind: noop}}
"""
PUBLISHED_AT_ONCE, CANCELLED_AT_ONCE = 1000, 200
POLL_S, SAY_S, STALLED_S = 0.5, 10.0, 120.0
# The planner appends its first decision as a whole: a second event means that it has decided.
DECIDED = """
SELECT k.execution_id FROM noetl.trigger_key k JOIN noetl.root_head h ON h.root_id = k.execution_id
WHERE k.tenant_id = $1 AND starts_with(k.trigger_key, $2) AND h.seq > 1 AND NOT h.terminal"""
WAITING = """
SELECT count(DISTINCT root_id) FROM noetl.event
WHERE root_id = ANY ($1::bigint[]) AND event_type = 'command.issued'"""
LAST_EVENTS = """
SELECT DISTINCT ON (root_id) root_id, event_id FROM noetl.event
WHERE root_id = ANY ($1::bigint[]) ORDER BY root_id, seq DESC"""

Say = Callable[[str], None]


class WaitingExecutions:
    """Starts executions that wait, and counts them in the log and in the planner's tables."""

    def __init__(self, settings: Settings, executions: Executions) -> None:
        self._settings, self._executions = settings, executions
        self._prefix = f"bench-many-{uuid4().hex[:8]}-"
        self.ids: frozenset[int] = frozenset()
        """Those that have been decided for and are open."""

    async def start(self, wanted: int, say: Say) -> float:
        """Start executions; return the seconds until the planner has decided for the last.

        Raises:
            ExecutionStalled: no further execution was started for long.
        """
        began = time.monotonic()
        publishing = asyncio.create_task(self._publish(wanted))
        try:
            await self._follow(wanted, say)
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
        return time.monotonic() - began

    async def _publish(self, wanted: int) -> None:
        for first in range(0, wanted, PUBLISHED_AT_ONCE):
            numbers = range(first, min(first + PUBLISHED_AT_ONCE, wanted))
            await self._executions.publish_all(PATH, [f"{self._prefix}{n}" for n in numbers])

    async def _follow(self, wanted: int, say: Say) -> None:
        began = moved_at = said_at = time.monotonic()
        while len(self.ids) < wanted:
            await asyncio.sleep(POLL_S)
            before, now = len(self.ids), time.monotonic()
            await self._read()
            if len(self.ids) > before:
                moved_at = now
            elif now - moved_at > STALLED_S:
                raise ExecutionStalled(
                    f"{before} of {wanted} executions were started, and none for "
                    f"{STALLED_S:.0f} s; see `streams status` and the logs of its roles"
                )
            if now - said_at > SAY_S:
                said_at = now
                say(f"{len(self.ids)} of {wanted} executions wait after {now - began:.0f} s")

    async def _read(self) -> None:
        tenant = self._settings.runtime.tenant_id
        rows = await self._executions.connection.fetch(DECIDED, tenant, self._prefix)
        self.ids = frozenset(row["execution_id"] for row in rows)

    async def count_open(self) -> int:
        """Return how many are open in the log and have issued their command."""
        await self._read()
        return int(await self._executions.connection.fetchval(WAITING, list(self.ids)))

    async def count_stored(self, data: Path, planner: str) -> int:
        """Return how many the tables on the planner's disk have."""
        folder = layout_of(data).roles / planner / "faust"
        return len(self.ids & await asyncio.to_thread(stored_executions, folder))

    async def cancel(self) -> None:
        """Cancel all, in batches."""
        ids = sorted(self.ids)
        async with open_log(self._settings, role="bench", lanes=1) as log:
            for first in range(0, len(ids), CANCELLED_AT_ONCE):
                part = ids[first : first + CANCELLED_AT_ONCE]
                rows = await self._executions.connection.fetch(LAST_EVENTS, part)
                causes = {row["root_id"]: row["event_id"] for row in rows}
                await log.store.append([self._cancelled(key, causes[key]) for key in part])

    def _cancelled(self, execution_id: int, cause_id: int) -> NewEvent:
        runtime = self._settings.runtime
        return cancelled(
            Root("execution", execution_id),
            Scope(runtime.tenant_id, runtime.organization_id),
            by="bench",
            reason="the bench is over",
            now=datetime.now(UTC),
            key=self._prefix,
            cause_id=cause_id,
        )
