"""The catalog on a real Postgres: several processes at once, and the index it goes by."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from streams.app import open_log, open_pool
from streams.catalog.catalog import Catalog
from streams.catalog.postgres import PostgresCatalogEvents
from streams.clock import SystemClock
from streams.log.errors import LogUnavailable
from streams.payload.port import Scope
from streams.settings import Settings
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack
SCOPE = Scope("acme", "care")
TEXT = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: at/once}\nworkflow: [{step: a}]\n"


async def test_processes_that_register_one_path_at_once_make_one_entry(database: Settings) -> None:
    append = dsn(database, "append")
    async with (
        open_log(database, role="test") as log,
        open_pool(append) as two,
        open_pool(append) as three,
    ):
        catalogs = [
            Catalog(
                log.store,
                PostgresCatalogEvents(pool, log.codec),
                next_id=log.ids.next,
                clock=SystemClock(),
            )
            for pool in (log.pool, two, three)
        ]
        texts = [f"{TEXT}# {number}\n" for number in range(4)]
        made = await asyncio.gather(
            *[catalog.register(SCOPE, text) for text in texts for catalog in catalogs]
        )
        events = await PostgresCatalogEvents(two, log.codec).of_path(SCOPE, "at/once")
    assert len({one.catalog_id for one in made}) == 1
    assert [event.meta["version"] for event in events] == list(range(1, len(events) + 1))
    assert sum(one.is_new for one in made) == len(events)


async def test_a_path_is_looked_up_by_its_index(database: Settings) -> None:
    connection = await asyncpg.connect(dsn(database))
    try:
        await connection.execute("SET enable_seqscan = off")
        rows = await connection.fetch("""
            EXPLAIN SELECT envelope FROM noetl.event
            WHERE root_type = 'catalog' AND tenant_id = 'a' AND organization_id = 'b'
              AND meta->>'path' = 'c' ORDER BY root_id, seq
        """)
    finally:
        await connection.close()
    plan = "\n".join(row[0] for row in rows)
    assert "(meta ->> 'path'::text) = 'c'::text" in plan.split("Index Cond:")[1].split("\n")[0]


async def test_a_database_that_was_not_migrated_is_said_so(empty_database: Settings) -> None:
    async with open_pool(dsn(empty_database)) as pool:
        events = PostgresCatalogEvents(pool, codec=None)  # type: ignore[arg-type]
        with pytest.raises(LogUnavailable, match="is it migrated"):
            await events.of_path(SCOPE, "any")
