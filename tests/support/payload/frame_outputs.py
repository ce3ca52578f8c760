"""What an execution's frames left: in the payload store alone, and as projectors read it."""

from __future__ import annotations

import asyncio
import time

import asyncpg

from streams.app import open_log, open_pool
from streams.events.model import PayloadRef, Root
from streams.payload.objects.open import open_payloads
from streams.settings import Settings

TIMEOUT_S = 30.0
OUTPUTS = """
SELECT count(o.frame_id), count(*) FILTER (
         WHERE o.frame_id IS NULL OR o.problem IS NOT NULL OR o.row_count <> f.row_count)
FROM noetl.frame f LEFT JOIN (
  SELECT frame_id, sum(row_count) AS row_count, max(problem) AS problem
  FROM noetl.frame_output GROUP BY frame_id) o USING (frame_id)
WHERE f.execution_id = $1 AND f.output_ref IS NOT NULL"""


async def assert_frames_are_kept(settings: Settings, execution_id: int, commits: int) -> None:
    """Hold that every commit's rows are in tier 3, whole, and that projectors have read them."""
    refs = await _committed(settings, execution_id)
    assert len(refs) == commits > 0
    async with open_payloads(settings) as store:  # no tier is before this one
        for ref in refs:
            assert ref is not None
            assert len(await store.get(ref)) == ref.byte_length > 0
    async with open_pool(settings.event_store.canonical_connection.dsn("read")) as pool:
        assert await _read(pool, execution_id, commits) == (commits, 0)


async def _committed(settings: Settings, execution_id: int) -> list[PayloadRef | None]:
    async with open_log(settings, role="test", lanes=1) as log:
        found = log.store.read_root(Root("execution", execution_id))
        return [event.payload_ref async for event in found if event.type == "frame.committed"]


async def _read(pool: asyncpg.Pool, execution_id: int, commits: int) -> tuple[int, int]:
    """Return how many frames were read, and how many not well, once projectors have done so."""
    until = time.monotonic() + TIMEOUT_S
    while True:
        found = tuple(await pool.fetchrow(OUTPUTS, execution_id))
        if found == (commits, 0) or time.monotonic() > until:
            return found
        await asyncio.sleep(0.2)
