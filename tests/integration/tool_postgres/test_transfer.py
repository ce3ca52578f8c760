"""Transfers into a real Postgres: from HTTP, from Postgres, and from and to Snowflake's client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.settings import Settings
from streams.worker.port import Call, Outcome
from streams.worker.sinks.port import SinkEnvironment
from streams.worker.sinks.tool import SinkTool
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.http.tool import HttpTool
from streams.worker.tools.postgres.tool import PostgresTool
from streams.worker.tools.snowflake import SnowflakeTool
from streams.worker.tools.transfer import TransferTool, TransferTools
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack
SNOW = {"sf_account": "a", "user": "u", "password": "p", "database": "db", "schema": "s"}
POSTS = [{"userId": n % 3, "id": n, "title": f"it's {n}", "by": {"name": "x"}} for n in range(5)]
TARGET: dict[str, Any] = {"type": "postgres", "auth": "pg", "table": "t"}


@pytest.fixture
async def transfer(database: Settings) -> AsyncIterator[TransferTool]:
    known = ConfiguredCredentials({"pg": {"dsn": dsn(database)}, "snow": SNOW}, {})
    sink = SinkTool(SinkEnvironment(credentials=known, deployment="test", folder=None))
    tools = TransferTools(
        http=HttpTool(known),
        postgres=PostgresTool(known, deployment="test"),
        snowflake=lambda: SnowflakeTool(known),
        sink=sink,
    )
    made = TransferTool(tools)
    yield made
    await made.close()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def posts(_request: web.Request) -> web.Response:
        return web.json_response(POSTS)

    async def pages(_request: web.Request) -> web.Response:
        return web.json_response({"page": {"found": POSTS}, "status": "ok"})

    app = web.Application()
    app.router.add_get("/posts", posts)
    app.router.add_get("/pages", pages)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
def snow() -> Iterator[Any]:
    import fakesnow
    import snowflake.connector

    with fakesnow.patch(), snowflake.connector.connect(database="db", schema="s") as session:
        session.cursor().execute("CREATE TABLE t (id INT, v TEXT)")
        yield session


def data(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


async def test_rows_of_an_answer_are_written_once(
    transfer: TransferTool, db: asyncpg.Connection, call: Call, url: str
) -> None:
    mapping = {"id": "id", "v": "title"}
    config: dict[str, Any] = {"source": {"type": "http", "url": f"{url}/posts", "method": "GET"}}
    config |= {"target": {**TARGET, "mapping": mapping}, "chunk_size": 2}
    first = data(await transfer.run(config, call))
    again = data(await transfer.run(config, replace(call, attempt=2)))
    assert (first["rows_read"], first["rows_written"]) == (5, 5)
    assert again["rows_written"] == 5
    found = await db.fetch("SELECT id, v FROM t ORDER BY id")
    assert [tuple(row) for row in found] == [(n, f"it's {n}") for n in range(5)]


async def test_nested_rows_and_fields_are_named_by_a_path(
    transfer: TransferTool, db: asyncpg.Connection, call: Call, url: str
) -> None:
    source: dict[str, Any] = {"type": "http", "url": f"{url}/pages", "path": "page.found"}
    target: dict[str, Any] = {**TARGET, "mapping": {"id": "id", "v": "by.name"}}
    assert data(await transfer.run({"source": source, "target": target}, call))["rows_read"] == 5
    assert await db.fetchval("SELECT count(*) FROM t WHERE v = 'x'") == 5


async def test_replace_and_upsert_change_what_is_there(
    transfer: TransferTool, db: asyncpg.Connection, call: Call
) -> None:
    await db.execute("INSERT INTO t VALUES (1, 'old'), (9, 'other')")
    source: dict[str, Any] = {"type": "postgres", "auth": "pg"}
    query = "SELECT n AS id, 'new' || n AS v FROM generate_series(1, 2) AS n"
    config: dict[str, Any] = {"source": {**source, "query": query}, "target": TARGET}
    refused = await transfer.run({**config, "mode": "upsert"}, call)
    assert refused.error is not None
    assert "needs 'target.key'" in str(refused.error["message"])
    upsert = {**config, "mode": "upsert", "target": {**TARGET, "key": "id"}}
    assert data(await transfer.run(upsert, call))["rows_written"] == 2
    rows = await db.fetch("SELECT v FROM t ORDER BY id")
    assert [row["v"] for row in rows] == ["new1", "new2", "other"]
    done = data(await transfer.run({**config, "mode": "replace"}, replace(call, partition="2")))
    assert done["rows_written"] == 2
    assert await db.fetchval("SELECT string_agg(v, ' ' ORDER BY id) FROM t") == "new1 new2"


async def test_a_rejected_row_leaves_the_table_as_it_was(
    transfer: TransferTool, db: asyncpg.Connection, call: Call
) -> None:
    await db.execute("INSERT INTO t VALUES (2, 'old')")
    query = "SELECT n AS id, 'new' AS v FROM generate_series(1, 3) AS n"
    config: dict[str, Any] = {"source": {"type": "postgres", "auth": "pg", "query": query}}
    outcome = await transfer.run({**config, "target": TARGET, "chunk_size": 1}, call)
    assert outcome.error is not None
    assert outcome.error["kind"] == "pg.23505"
    assert str(outcome.error["message"]).startswith("target: ")
    assert await db.fetchval("SELECT count(*) FROM t") == 1


async def test_a_query_of_the_target_is_run_for_each_row(
    transfer: TransferTool, db: asyncpg.Connection, call: Call
) -> None:
    source: dict[str, Any] = {"type": "postgres", "auth": "pg", "query": "SELECT 5 AS a, 'x' AS b"}
    target: dict[str, Any] = {
        "type": "postgres",
        "auth": "pg",
        "query": "INSERT INTO t VALUES (:a * 2, :b)",
    }
    data(await transfer.run({"source": source, "target": target}, call))
    assert await db.fetchval("SELECT id FROM t") == 10


async def test_snowflake_is_a_source_and_a_target(
    transfer: TransferTool, db: asyncpg.Connection, call: Call, snow: Any
) -> None:
    await db.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    to: dict[str, Any] = {"source": {"type": "postgres", "auth": "pg", "query": "SELECT * FROM t"}}
    to["target"] = {"type": "snowflake", "auth": "snow", "table": "t"}
    assert data(await transfer.run(to, call))["rows_written"] == 2
    assert sorted(snow.cursor().execute("SELECT id, v FROM t").fetchall()) == [(1, "a"), (2, "b")]
    query = "SELECT id + 10 AS id, v FROM t"
    back: dict[str, Any] = {"source": {"type": "snowflake", "auth": "snow", "query": query}}
    back["target"] = {**TARGET, "mapping": {"id": "ID", "v": "V"}}
    data(await transfer.run(back, replace(call, partition="2")))
    assert await db.fetchval("SELECT count(*) FROM t WHERE id > 10") == 2


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"source": {"type": "ftp"}, "target": TARGET}, "'source.type' is 'ftp'"),
        ({"source": {"type": "http"}, "target": TARGET, "mode": "merge"}, "'mode' is 'merge'"),
    ],
)
async def test_a_transfer_that_is_none_is_refused(
    transfer: TransferTool, call: Call, config: dict[str, Any], why: str
) -> None:
    outcome = await transfer.run(config, call)
    assert outcome.error is not None
    assert why in str(outcome.error["message"])
