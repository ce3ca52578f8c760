"""Migrations on a real Postgres: up, down, again, at once, and what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from streams.log.errors import LogUnavailable
from streams.log.migrate import (
    ChangedMigration,
    FailedMigration,
    NewerDatabase,
    migrate,
    migrations,
)
from streams.settings import Settings
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack

# What a schema consists of, each kind as (name, how it is spelled).
STRUCTURE = {
    "relations": """
        SELECT c.oid::regclass::text, concat_ws(' ', c.relkind,
          pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid), c.reloptions,
          obj_description(c.oid, 'pg_class'))
        FROM pg_class c WHERE c.relnamespace = 'noetl'::regnamespace
    """,
    "columns": """
        SELECT a.attrelid::regclass || '.' || a.attname,
          concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid),
            col_description(a.attrelid, a.attnum))
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
        WHERE c.relnamespace = 'noetl'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
    """,
    "constraints": """
        SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'noetl'::regnamespace
    """,
    "indexes": "SELECT indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'noetl'",
    "views": "SELECT viewname::text, definition FROM pg_views WHERE schemaname = 'noetl'",
    "functions": """
        SELECT oid::regprocedure::text,
          CASE WHEN prokind = 'a' THEN 'aggregate' ELSE pg_get_functiondef(oid) END
        FROM pg_proc WHERE pronamespace = 'noetl'::regnamespace
    """,
    "publications": """
        SELECT p.pubname || ' ' || t.tablename, concat_ws(' ', p.pubinsert, p.pubupdate,
          p.pubdelete, p.pubtruncate, p.pubviaroot, t.attnames)
        FROM pg_publication p JOIN pg_publication_tables t USING (pubname)
    """,
}
GRANTS = {
    "relation grants": """
        SELECT c.oid::regclass || ' ' || g.grantee::regrole || ' ' || g.privilege_type, ''
        FROM pg_class c, aclexplode(c.relacl) g WHERE c.relnamespace = 'noetl'::regnamespace
    """,
    "function grants": """
        SELECT p.oid::regprocedure || ' ' || g.grantee || ' ' || g.privilege_type, ''
        FROM pg_proc p, aclexplode(p.proacl) g WHERE p.pronamespace = 'noetl'::regnamespace
    """,
    "schema grants": """
        SELECT g.grantee::regrole || ' ' || g.privilege_type, ''
        FROM pg_namespace n, aclexplode(n.nspacl) g WHERE n.nspname = 'noetl'
    """,
}
# Numbers may have gaps: work that goes on side by side reserves them.
NUMBERS = [migration.number for migration in migrations()]
NEWEST, COUNT = NUMBERS[-1], len(NUMBERS)


@pytest.fixture
def owner(empty_database: Settings) -> str:
    return dsn(empty_database)


@pytest.fixture
async def connection(owner: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(owner)
    yield opened
    await opened.close()


async def dump(connection: asyncpg.Connection, kinds: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return everything in the schema, so that two states can be compared."""
    return {kind: dict(await connection.fetch(query)) for kind, query in kinds.items()}


async def test_down_and_up_again_leave_the_same_schema(
    owner: str, connection: asyncpg.Connection
) -> None:
    done = await migrate(owner)
    assert [step.split()[0] for step in done] == ["up"] * COUNT
    first = await dump(connection, STRUCTURE | GRANTS)
    assert all(first.values()), "the dump must see something of every kind"

    await migrate(owner, to=0)
    empty = await dump(connection, STRUCTURE)
    assert set(empty["relations"]) == {"noetl.migration", "noetl.migration_pkey"}
    assert not empty["functions"]
    assert not empty["publications"]

    await migrate(owner)
    assert await dump(connection, STRUCTURE | GRANTS) == first


async def test_every_step_down_undoes_its_step_up(
    owner: str, connection: asyncpg.Connection
) -> None:
    states = {}
    for number in (0, *NUMBERS):
        await migrate(owner, to=number)
        states[number] = await dump(connection, STRUCTURE)
    assert all(one != other for one, other in pairwise(states.values()))
    for number in reversed((0, *NUMBERS[:-1])):
        await migrate(owner, to=number)
        assert await dump(connection, STRUCTURE) == states[number], f"down to {number}"


async def test_migrating_again_does_nothing(owner: str) -> None:
    await migrate(owner)
    assert await migrate(owner) == []


async def test_many_that_migrate_at_once_do_it_once(
    owner: str, connection: asyncpg.Connection
) -> None:
    done = await asyncio.gather(*[migrate(owner) for _ in range(8)])
    assert sorted(map(len, done)) == [0] * 7 + [COUNT]
    assert await connection.fetchval("SELECT count(*) FROM noetl.migration") == COUNT


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    owner: str, connection: asyncpg.Connection
) -> None:
    planned = await migrate(owner, dry_run=True)
    assert await connection.fetchval("SELECT to_regnamespace('noetl')") is None
    assert await migrate(owner) == planned
    down = await migrate(owner, to=3, dry_run=True)
    assert [step.split()[0] for step in down] == ["down"] * (COUNT - 3)
    assert await migrate(owner) == []


async def test_a_changed_migration_is_refused(owner: str, connection: asyncpg.Connection) -> None:
    await migrate(owner)
    await connection.execute("UPDATE noetl.migration SET sha256 = 'other' WHERE number = 3")
    with pytest.raises(ChangedMigration, match="0003_schema was changed after it was applied"):
        await migrate(owner)
    with pytest.raises(ChangedMigration):
        await migrate(owner, to=0)
    assert await connection.fetchval("SELECT to_regclass('noetl.event')") is not None


async def test_a_newer_database_is_refused(owner: str, connection: asyncpg.Connection) -> None:
    await migrate(owner)
    await connection.execute("INSERT INTO noetl.migration VALUES (9999, 'later', 'x')")
    with pytest.raises(NewerDatabase, match=f"at migration 9999, this program knows {NEWEST}"):
        await migrate(owner)


async def test_a_step_that_fails_leaves_the_step_before_it(
    owner: str, connection: asyncpg.Connection
) -> None:
    await migrate(owner, to=2)
    await connection.execute("CREATE TABLE noetl.schema_subject (in_the_way integer)")
    with pytest.raises(FailedMigration, match=r"0003_schema.*schema_subject.*already exists"):
        await migrate(owner)
    assert await connection.fetchval("SELECT max(number) FROM noetl.migration") == 2
    assert await connection.fetchval("SELECT to_regclass('noetl.schema')") is None
    await connection.execute("DROP TABLE noetl.schema_subject")
    assert len(await migrate(owner)) == COUNT - 2


async def test_a_ledger_that_cannot_be_made_is_said_so(
    owner: str, connection: asyncpg.Connection, empty_database: Settings
) -> None:
    with pytest.raises(FailedMigration, match=r"noetl\.migration failed.*permission denied"):
        await migrate(dsn(empty_database, "read"))
    await connection.execute("CREATE SCHEMA noetl; CREATE TABLE noetl.migration (other text)")
    for dry_run in (True, False):
        with pytest.raises(FailedMigration, match=r"noetl\.migration failed"):
            await migrate(owner, dry_run=dry_run)


async def test_partitions_that_cannot_be_made_are_said_so(
    owner: str, connection: asyncpg.Connection
) -> None:
    await migrate(owner)
    await connection.execute("DROP FUNCTION noetl.ensure_partitions")
    with pytest.raises(FailedMigration, match="creating partitions ahead failed"):
        await migrate(owner)


async def test_a_database_that_goes_away_is_said_so(
    owner: str, connection: asyncpg.Connection
) -> None:
    await migrate(owner, to=1)
    await connection.execute(
        "CREATE FUNCTION public.leave() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;"
        "CREATE TRIGGER leave BEFORE INSERT ON noetl.migration "
        "FOR EACH ROW EXECUTE FUNCTION public.leave()"
    )
    with pytest.raises(LogUnavailable, match=r"does not answer.*try again"):
        await migrate(owner)


async def test_a_database_that_is_not_there_is_said_so() -> None:
    with pytest.raises(LogUnavailable, match="is it up"):
        await migrate("postgresql://nobody@127.0.0.1:1/nothing")


async def test_a_login_that_postgres_refuses_is_said_so(owner: str) -> None:
    for wrong in ("nobody:x@", "noetl_owner:wrong@"):
        with pytest.raises(LogUnavailable, match="cannot connect to Postgres"):
            await migrate(f"postgresql://{wrong}{owner.rpartition('@')[2]}")


async def test_partitions_are_made_ahead_of_need(
    owner: str, connection: asyncpg.Connection
) -> None:
    await migrate(owner)
    bounds = await _bounds(connection)
    now = datetime.now(UTC)
    months = [
        (now.year + (now.month - 1 + i) // 12, (now.month - 1 + i) % 12 + 1) for i in range(6)
    ]
    names = [f"event_{year}{month:02d}" for year, month in months]
    assert list(bounds) == ["event_past", *names[:4]]
    assert await connection.fetchval("SELECT noetl.ensure_partitions()") == 0
    assert await connection.fetchval("SELECT noetl.ensure_partitions(5)") == 2
    bounds = await _bounds(connection)
    assert list(bounds) == ["event_past", *names]
    edges = list(bounds.values())
    assert all(one[1] == other[0] for one, other in pairwise(edges))


async def _bounds(connection: asyncpg.Connection) -> dict[str, tuple[str, str]]:
    """Return every partition with its lower and upper edge, in order."""
    rows = await connection.fetch("""
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'noetl.event'::regclass ORDER BY c.relname <> 'event_past', c.relname
    """)
    found = {}
    for row in rows:
        low, high = row["bound"].removeprefix("FOR VALUES FROM (").split(") TO (")
        found[row["relname"]] = (low, high.rstrip(")"))
    return found
