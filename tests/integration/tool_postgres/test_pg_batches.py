"""Batches of the postgres tool: once with their fence, and the row to blame is named."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from streams.settings import Settings
from streams.worker.errors import SaveFailed
from streams.worker.port import Fence, Saved
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres import pools as pg_pools
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.log.databases import dsn
from tests.support.worker.postgres_tool import INSERT, UPSERT, calls, sql

pytestmark = pytest.mark.stack


@pytest.mark.parametrize("command", [INSERT, UPSERT], ids=["insert", "upsert"])
async def test_a_batch_and_its_fence_are_found_by_the_next_attempt(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, command: str
) -> None:
    saved = Saved(row_count=20, cursor={"to": 20}, output={"uri": "noetl://x", "sha256": "d"})
    batch = calls(*((n, "a") for n in range(20)), command=command)
    assert await tool.find(batch[0], [fence]) == {}
    assert await tool.save([(fence, batch)], saved) == {}
    assert await tool.find(batch[0], [fence]) == {fence: saved}
    other = Saved(row_count=5, cursor={"to": 5})
    assert await tool.save([(fence, calls((99, "b")))], other) == {fence: saved}
    assert await db.fetchval("SELECT count(*) FROM t") == 20


async def test_two_attempts_saving_at_once_write_the_rows_once(
    database: Settings, db: asyncpg.Connection, fence: Fence
) -> None:
    await db.execute("DROP TABLE IF EXISTS noetl_fence; ALTER TABLE t DROP CONSTRAINT t_pkey")
    credentials = ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {})
    tools = [PostgresTool(credentials, deployment="test") for _ in range(4)]
    try:
        batch = calls(*((n, "a") for n in range(50)))
        found = await asyncio.gather(
            *(
                one.save([(fence, batch)], Saved(row_count=50, cursor={"attempt": n}))
                for n, one in enumerate(tools)
            )
        )
    finally:
        for one in tools:
            await one.close()
    assert await db.fetchval("SELECT count(*) FROM t") == 50
    assert sum(not one for one in found) == 1
    winner = next(n for n, one in enumerate(found) if not one)
    assert all(one[fence].cursor == {"attempt": winner} for one in found if one)


async def test_batches_of_several_tasks_go_in_one_transaction(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    second = replace(fence, task="other")
    bad = [(fence, calls((1, "a"), (2, "b"))), (second, calls((3, "c"), (1, "again")))]
    with pytest.raises(SaveFailed) as refused:
        await tool.save(bad, Saved(row_count=2))
    assert (refused.value.task, refused.value.rows) == ("other", (1,))
    assert await db.fetchval("SELECT count(*) FROM t") == 0
    assert await tool.find(bad[0][1][0], [fence, second]) == {}


@pytest.mark.parametrize("bad", [0, 17, 29])
@pytest.mark.parametrize(
    ("command", "value"), [(INSERT, "not a number"), (UPSERT, "not a number"), (INSERT, 5)]
)
async def test_the_row_to_blame_is_named(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, command: str, value: Any, bad: int
) -> None:
    await db.execute("INSERT INTO t VALUES (5, 'there already')")
    batch = calls(*((n + 100, "a") for n in range(30)), command=command)
    batch[bad] = calls((value, "a"), command=command)[0]
    with pytest.raises(SaveFailed, match=f"row {bad} of the batch") as refused:
        await tool.save([(fence, batch)], Saved(row_count=30))
    assert refused.value.rows == (bad,)
    await tool.save([(fence, batch[:bad] + batch[bad + 1 :])], Saved(row_count=29))
    assert await db.fetchval("SELECT count(*) FROM t") == 30


async def test_a_call_with_a_bad_row_among_its_rows_is_named(
    tool: PostgresTool, fence: Fence, db: asyncpg.Connection
) -> None:
    good, bad = [{"id": n, "v": ""} for n in range(9)], [{"id": 10, "v": ""}, {"id": "x", "v": ""}]
    with pytest.raises(SaveFailed) as refused:
        await tool.save(
            [(fence, [sql(INSERT, rows=good), sql(INSERT, rows=bad)])], Saved(row_count=2)
        )
    assert refused.value.rows == (1,)
    assert await db.fetchval("SELECT count(*) FROM t") == 0


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("text", ["nul \x00", "half \ud800"])
async def test_text_that_postgres_cannot_hold_is_named(
    tool: PostgresTool, fence: Fence, text: str
) -> None:
    batch = calls(*((n, "a") for n in range(20)))
    batch[7] = calls((7, text))[0]
    with pytest.raises(SaveFailed) as refused:
        await tool.save([(fence, batch)], Saved(row_count=20))
    assert refused.value.rows == (7,)


async def test_a_credential_that_is_not_there_fails_the_save(
    tool: PostgresTool, fence: Fence
) -> None:
    config = {**calls((1, "a"))[0], "auth": "nobody"}
    with pytest.raises(SaveFailed, match="nobody"):
        await tool.find(config, [fence])
    with pytest.raises(SaveFailed, match="nobody"):
        await tool.save([(fence, [config])], Saved(row_count=1))


async def test_a_row_without_a_value_is_named(tool: PostgresTool, fence: Fence) -> None:
    batch = [*calls((1, "a")), sql(INSERT, params={"id": 2})]
    with pytest.raises(SaveFailed, match=":v") as refused:
        await tool.save([(fence, batch)], Saved(row_count=2))
    assert refused.value.rows == (1,)


async def test_a_statement_that_is_wrong_for_all_rows_names_none(
    tool: PostgresTool, fence: Fence
) -> None:
    batch = calls((1, "a"), command="INSERT INTO nowhere (id, v) VALUES (:id, :v)")
    with pytest.raises(SaveFailed, match="nowhere") as refused:
        await tool.save([(fence, batch)], Saved(row_count=1))
    assert refused.value.rows == ()


async def test_a_statement_that_is_wrong_for_some_rows_names_those(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    wrong = INSERT.replace("v)", "nowhere)", 1)
    batch = calls((1, "a"), (2, "b"))
    batch[1:1] = calls((3, "c"), (4, "d"), command=wrong)
    batch += calls((5, "e"), command=wrong)
    with pytest.raises(SaveFailed, match=r"3 rows of the batch.*nowhere") as refused:
        await tool.save([(fence, batch)], Saved(row_count=5))
    assert refused.value.rows == (1, 2, 4)
    await tool.save([(fence, [batch[0], batch[3]])], Saved(row_count=2))
    assert await db.fetchval("SELECT count(*) FROM t") == 2


async def test_a_call_of_several_statements_is_saved_with_the_others(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    alone = INSERT.replace(", v", "").replace(", :v", "")
    saves = [{"command": INSERT, "rows": [{"id": 1, "v": "a"}]}]
    saves += [{"command": alone, "rows": [{"id": 2}, {"id": "x"}]}]
    batch = [*calls((3, "c")), {"auth": "pg", "saves": saves}]
    with pytest.raises(SaveFailed) as refused:
        await tool.save([(fence, batch)], Saved(row_count=2))
    assert refused.value.rows == (1,)
    saves[1]["rows"].pop()
    await tool.save([(fence, batch)], Saved(row_count=2))
    assert [tuple(row) for row in await db.fetch("SELECT * FROM t ORDER BY id")] == [
        (1, "a"),
        (2, None),
        (3, "c"),
    ]


async def test_the_same_key_twice_in_an_upsert_keeps_the_last(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    await tool.save([(fence, calls((1, "a"), (1, "b"), command=UPSERT))], Saved(row_count=2))
    assert await db.fetchval("SELECT v FROM t") == "b"


async def test_a_view_takes_a_batch_too(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    await db.execute("CREATE OR REPLACE VIEW v AS SELECT * FROM t")
    batch = calls(*((n, "a") for n in range(20)), command=INSERT.replace("INTO t", "INTO v"))
    await tool.save([(fence, batch)], Saved(row_count=20))
    assert await db.fetchval("SELECT count(*) FROM t") == 20
    await db.execute("DROP VIEW v")


async def test_an_expression_over_a_parameter_is_kept_in_a_batch(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    command = "INSERT INTO public.\"t\" (id, v) VALUES (:id + 1, upper(:v) || ':v')"
    await tool.save([(fence, calls((1, "a"), (2, "b"), command=command))], Saved(row_count=2))
    assert [tuple(row) for row in await db.fetch("SELECT * FROM t ORDER BY id")] == [
        (2, "A:v"),
        (3, "B:v"),
    ]


async def test_a_database_that_nobody_names_any_more_is_closed(
    database: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_pools, "UNUSED_S", -1.0)
    pools = pg_pools.PostgresPools(ConfiguredCredentials({}, {}))
    try:
        first = await pools.database({"dsn": dsn(database)}, "t", "o")
        async with first.connection() as connection:
            other = {"dsn": dsn(database, "read")}
            await pools.database(other, "t", "o")
            assert await connection.fetchval("SELECT 1") == 1  # in use, so it was left alone
        await pools.database({"dsn": dsn(database, "append")}, "t", "o")
        again = await pools.database({"dsn": dsn(database)}, "t", "o")
        assert again is not first
        async with again.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1
    finally:
        await pools.close()
