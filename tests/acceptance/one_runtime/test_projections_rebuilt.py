"""Projected rows are lost or wrong; a rebuild restores every checksum while the stack runs."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from streams.app import open_pool
from streams.roles.projection_rebuild import NoSuchRoot, rebuild_projections, rebuild_totals
from streams.roles.rebuild_parity import rebuild_parity
from streams.roles.table_rebuild import rebuild_tables
from tests.support.log.databases import dsn
from tests.support.servers.runtime import Runtime, playbook
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
TABLES = {
    "execution": "checksum, state_checksum",
    "stage": "checksum",
    "frame": "checksum",
    "command": "checksum",
    "frame_output": "row_count, byte_count, column_count, null_count, problem",
    "result_ref": "sha256, physical_uri, expired_at",
}
LOOP = {
    "step": "each",
    "loop": {"in": [1, 2, 3, 4, 5], "iterator": "n", "frame_policy": {"size": 2}},
    "tool": {"kind": "noop", "data": "{{ iter.n * 2 }}"},
}


async def test_every_checksum_is_equal_after_rows_and_changelogs_were_deleted(
    runtime: Runtime,
) -> None:
    first = await runtime.run(playbook(LOOP))
    second = await runtime.run(playbook(LOOP))
    ids = [first.execution_id, second.execution_id]
    async with open_pool(dsn(runtime.settings, "project")) as pool:
        await until(lambda: _is_projected(pool, ids), within_s=30)
        before = await _rows(pool, ids)
        assert len(before["frame"]) == 6
        await _insert_unknown(pool, ids[0])
        await _delete(pool, ids[:1])
        await pool.execute(
            "UPDATE noetl.frame SET status = 'FAILED' WHERE execution_id = $1", ids[1]
        )
        wrong = await rebuild_parity(runtime.settings, ids[1])
        assert any("frame" in line for line in wrong.failures), wrong

        done = await rebuild_projections(runtime.settings, execution_id=ids[0])
        assert done.roots == 1
        assert await _rows(pool, ids[:1]) == {
            table: [row for row in rows if row["execution_id"] == ids[0]]
            for table, rows in before.items()
        }

        await _delete(pool, ids[:1])
        totals = await rebuild_totals(runtime.settings)
        await rebuild_tables(runtime.settings, lambda _: None)
        done = await rebuild_projections(runtime.settings)
        assert done.events >= totals.events
        assert not done.broken
        assert await _rows(pool, ids) == before
        compared = [await rebuild_parity(runtime.settings, one) for one in ids]
        assert [(one.executions, one.failures) for one in compared] == [(1, ())] * 2
        assert not await pool.fetchval(
            "SELECT count(*) FROM noetl.execution WHERE execution_id = 1"
        )


async def test_an_execution_that_the_log_does_not_have_is_refused(runtime: Runtime) -> None:
    with pytest.raises(NoSuchRoot, match="execution 1 is not in the log"):
        await rebuild_projections(runtime.settings, execution_id=1)


async def _is_projected(pool: asyncpg.Pool, ids: list[int]) -> bool:
    behind = await pool.fetchval(
        "SELECT count(*) FROM noetl.root_head h LEFT JOIN noetl.execution e "
        "ON e.execution_id = h.root_id WHERE h.root_id = ANY ($1) "
        "AND e.last_seq IS DISTINCT FROM h.seq",
        ids,
    )
    return bool(behind == 0)


async def _rows(pool: asyncpg.Pool, ids: list[int]) -> dict[str, list[dict[str, Any]]]:
    return {
        table: [
            dict(row)
            for row in await pool.fetch(
                f"SELECT execution_id, {columns}, t::text AS whole FROM noetl.{table} t "
                "WHERE execution_id = ANY ($1) ORDER BY whole",
                ids,
            )
        ]
        for table, columns in TABLES.items()
    }


async def _insert_unknown(pool: asyncpg.Pool, like: int) -> None:
    """Insert a row of an execution that the log does not have."""
    await pool.execute(
        "INSERT INTO noetl.execution SELECT (jsonb_populate_record(e, '{\"execution_id\": 1}')).* "
        "FROM noetl.execution e WHERE execution_id = $1",
        like,
    )


async def _delete(pool: asyncpg.Pool, ids: list[int]) -> None:
    for table in TABLES:
        await pool.execute(f"DELETE FROM noetl.{table} WHERE execution_id = ANY ($1)", ids)
