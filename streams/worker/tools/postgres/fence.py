"""Fences: rows that record a save, written in the save's own transaction.

The table is in the target database, so rows and fence are written together or not at all.
The fence is inserted first: a second attempt at the same save waits for the first one's
transaction, and then either finds its fence or inserts its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg
import orjson

from streams.events.model import Json
from streams.worker.port import Fence, Saved
from streams.worker.tools.postgres.insert import Insert
from streams.worker.tools.postgres.pools import PooledDatabase

_MAKE = """
CREATE TABLE IF NOT EXISTS noetl_fence (
  deployment text NOT NULL,
  stage_id bigint NOT NULL,
  frame_id bigint NOT NULL,
  task text NOT NULL,
  partition text NOT NULL DEFAULT '',
  end_cursor jsonb,
  row_count bigint NOT NULL,
  output jsonb,
  digest text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (deployment, stage_id, frame_id, task, partition)
);
COMMENT ON TABLE noetl_fence IS
  'Saves that NoETL made here, so that none is made twice; rows of ended executions may go.';
"""
# CREATE … IF NOT EXISTS fails when two sessions run it concurrently.
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('noetl_fence', 0))"
_EXCLUDED = """
SELECT quote_ident(current_user::text)
WHERE NOT has_table_privilege('noetl_fence', 'SELECT')
   OR NOT has_table_privilege('noetl_fence', 'INSERT')
   OR NOT has_table_privilege('noetl_fence', 'UPDATE')
"""
_NAMES = """
unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])
  AS n(deployment, stage_id, frame_id, task, partition)
"""
_TAKE = f"""
INSERT INTO noetl_fence (deployment, stage_id, frame_id, task, partition,
                         end_cursor, row_count, output, digest)
SELECT n.*, $6::text::jsonb, $7::bigint, $8::text::jsonb, $9::text FROM {_NAMES}
ORDER BY deployment, stage_id, frame_id, task, partition
ON CONFLICT DO NOTHING
RETURNING deployment, stage_id, frame_id, task, partition
"""  # noqa: S608 - no values in it
_FIND = f"""
SELECT deployment, stage_id, frame_id, task, partition, end_cursor, row_count, output
FROM noetl_fence JOIN {_NAMES} USING (deployment, stage_id, frame_id, task, partition)
"""  # noqa: S608 - no values in it
_FILL = """
UPDATE noetl_fence SET row_count = $6, output = $7::text::jsonb
WHERE (deployment, stage_id, frame_id, task, partition) = ($1, $2, $3, $4, $5)
"""

_WITH_ROWS = """
WITH fence AS (
  INSERT INTO noetl_fence (deployment, stage_id, frame_id, task, partition,
                           end_cursor, row_count, output, digest)
  VALUES ($1, $2, $3, $4, $5, $6::text::jsonb, $7, $8::text::jsonb, $9)
  ON CONFLICT DO NOTHING RETURNING 1
), written AS (
{insert}
)
SELECT count(*) FROM fence
"""

Name = tuple[str, int, int, str, str]


async def ready(database: PooledDatabase, connection: asyncpg.Connection) -> None:
    """Create the table of fences if it does not exist.

    Raises:
        InsufficientPrivilegeError: it belongs to another role, which did not share it.
    """
    if database.has_fences:
        return
    if await connection.fetchval("SELECT to_regclass('noetl_fence')") is None:
        async with connection.transaction():
            await connection.execute(_ALONE)
            await connection.execute(_MAKE)
    elif (who := await connection.fetchval(_EXCLUDED)) is not None:
        raise asyncpg.InsufficientPrivilegeError(
            f"the role {who} may not use the table noetl_fence, which another role created; "
            f"as that role run: GRANT SELECT, INSERT, UPDATE ON noetl_fence TO {who}"
        )
    database.has_fences = True


async def take(connection: asyncpg.Connection, fences: Sequence[Fence], saved: Saved) -> set[Fence]:
    """Insert the fences that do not exist; return those."""
    values = (_json(saved.cursor), saved.row_count, _json(saved.output), _digest(saved))
    rows = await connection.fetch(_TAKE, *_columns(fences), *values)
    taken = {tuple(row) for row in rows}
    return {fence for fence in fences if name_of(fence) in taken}


async def take_with_rows(
    connection: asyncpg.Connection,
    fence: Fence,
    saved: Saved,
    insert: Insert,
    types: Sequence[str],
    rows: str,
) -> bool:
    """Write a fence and its rows in one statement; False: the fence existed, nothing written."""
    many = insert.many(types, parameter=10, where=" WHERE EXISTS (SELECT FROM fence)")
    values = (_json(saved.cursor), saved.row_count, _json(saved.output), _digest(saved))
    sql = _WITH_ROWS.format(insert=many)
    return bool(await connection.fetchval(sql, *name_of(fence), *values, rows))


async def find(connection: asyncpg.Connection, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
    """Return the content of those of `fences` that exist."""
    rows = await connection.fetch(_FIND, *_columns(fences))
    found = {
        tuple(row)[:5]: Saved(
            row_count=row["row_count"], cursor=row["end_cursor"], output=row["output"]
        )
        for row in rows
    }
    return {fence: found[name_of(fence)] for fence in fences if name_of(fence) in found}


async def fill(
    connection: asyncpg.Connection, fence: Fence, row_count: int, output: Mapping[str, Json]
) -> None:
    """Store the outcome of a fence's call in it."""
    await connection.execute(_FILL, *name_of(fence), row_count, _json(output))


def name_of(fence: Fence) -> Name:
    """Return the fence's key."""
    return (fence.deployment, fence.stage_id, fence.frame_id, fence.task, fence.partition)


def _columns(fences: Sequence[Fence]) -> list[list[Json]]:
    return [list(column) for column in zip(*map(name_of, fences), strict=True)]


def _digest(saved: Saved) -> str | None:
    return (saved.output or {}).get("sha256")


def _json(value: Mapping[str, Json] | None) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
