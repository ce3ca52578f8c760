"""Sinks to Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import orjson
import pytest

from streams.dev.bench.playbook_setup import author_dsn
from streams.playbook.parse import parse
from streams.settings import Settings
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.log.databases import dsn
from tests.support.worker.sinks import call, kind


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    await connection.execute(
        "DROP TABLE IF EXISTS hello; CREATE TABLE hello "
        '(id text PRIMARY KEY, v text, j jsonb, "Mixed" text, c1 text)'
    )
    yield connection
    await connection.close()


@pytest.fixture
async def postgres(database: Settings) -> AsyncIterator[PostgresTool]:
    known = ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {})
    made = PostgresTool(known, deployment="test")
    yield made
    await made.close()


async def written(tool: PostgresTool, block: dict[str, Any], **scope: Any) -> Outcome:
    """Run a sink's task twice, as one call."""
    at = call()
    step = {"step": "load", "tool": {"kind": "noop"}, "sink": {"auth": "pg", **block}}
    text = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"path": "t"}}
    task = parse(orjson.dumps({**text, "workflow": [step]}).decode()).steps["load"].tasks[-1]
    assert task.kind == "postgres"
    outcome = None
    for attempt in (1, 2):
        config: Any = task.config.render({"execution_id": "7", **scope})
        outcome = await tool.run(config, replace(at, attempt=attempt))
    assert outcome is not None
    return outcome


@pytest.mark.stack
async def test_postgres_rows_are_there_once_in_every_mode(
    postgres: PostgresTool, db: asyncpg.Connection
) -> None:
    block = {"storage": "postgres", "table": "hello", "data": "{{ result }}"}

    async def rows() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await db.fetch("SELECT id, v, j FROM hello ORDER BY id")]

    await written(postgres, block, result=[{"id": "1", "v": "1e5", "j": {"a": [1]}}])
    assert await rows() == [("1", "1e5", '{"a": [1]}')]
    upsert = {**block, "mode": "upsert", "key": ["id"]}
    await written(postgres, upsert, result=[{"id": "1", "v": "None"}, {"id": "2", "v": ""}])
    assert await rows() == [("1", "None", '{"a": [1]}'), ("2", "", None)]
    update = {**block, "mode": "update", "key": "id"}
    await written(postgres, update, result=[{"id": "1", "v": "x"}, {"id": "9", "v": "y"}])
    assert [row[:2] for row in await rows()] == [("1", "x"), ("2", "")]
    await written(postgres, {**block, "mode": "overwrite"}, result=[{"id": "3"}, {"id": "4"}])
    assert [row[0] for row in await rows()] == ["3", "4"]
    await written(postgres, {**block, "mode": "overwrite"}, result=[])
    assert await rows() == []
    missing = await written(postgres, {**block, "table": "nowhere"}, result={"a": 1})
    assert kind(missing) == "pg.42P01"
    assert "nowhere" in str(missing.error)


@pytest.mark.stack
async def test_a_column_that_a_row_lacks_is_left_alone(
    postgres: PostgresTool, db: asyncpg.Connection
) -> None:
    block = {"storage": "postgres", "table": "hello", "data": "{{ result }}", "key": "id"}
    upsert, update = {**block, "mode": "upsert"}, {**block, "mode": "update"}

    async def rows() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await db.fetch("SELECT id, v, j FROM hello ORDER BY id")]

    await written(postgres, upsert, result=[{"id": n, "v": n, "j": n} for n in ("1", "2")])
    mixed = await written(postgres, upsert, result=[{"id": "1", "v": "a"}, {"id": "2", "j": 5}])
    assert await rows() == [("1", "a", "1"), ("2", "2", "5")]
    where = {"store": "db", "key": "hello", "range": "rows:2"}
    assert mixed.data == {"rows": [], "row_count": 2, **where}
    await written(postgres, update, result=[{"id": "2", "v": "b"}, {"id": "1", "j": 6}])
    assert await rows() == [("1", "a", "6"), ("2", "b", "5")]
    turns = [{"id": "1", "v": "x"}, {"id": "1", "v": "y", "j": 7}, {"id": "1", "v": "z"}]
    await written(postgres, upsert, result=turns)
    assert (await rows())[0] == ("1", "z", "7")


@pytest.mark.stack
async def test_hostile_names_repeated_keys_and_nothing_at_all(
    postgres: PostgresTool, db: asyncpg.Connection
) -> None:
    block = {"storage": "postgres", "table": "hello", "data": "{{ result }}", "key": "id"}
    upsert, update = {**block, "mode": "upsert"}, {**block, "mode": "update"}
    await written(postgres, upsert, result=[{"id": "1", "v": "a"}, {"id": "1", "v": "b"}])
    assert await db.fetchval("SELECT v FROM hello") == "b"
    for mode in ("append", "update", "upsert"):
        nothing = await written(postgres, {**block, "mode": mode}, result=[])
        assert nothing.status == "success", nothing.error
    assert await db.fetchval("SELECT count(*) FROM hello") == 1
    await written(postgres, upsert, result={"id": "1", '"Mixed"': "m", "c1": "c"})
    assert tuple(await db.fetchrow('SELECT "Mixed", c1 FROM hello')) == ("m", "c")
    counted = [await written(postgres, update, result={"id": n, "v": "x"}) for n in ("1", "9")]
    assert [one.data["range"] for one in counted] == ["rows:1", "rows:0"]  # type: ignore[index,call-overload]


@pytest.mark.stack
async def test_a_sink_that_takes_too_long_is_a_timeout(
    postgres: PostgresTool, db: asyncpg.Connection
) -> None:
    block = {"storage": "postgres", "table": "hello", "data": {"id": "1"}, "spec": {"timeout": 0.2}}
    async with db.transaction():
        await db.execute("LOCK TABLE hello")
        assert kind(await written(postgres, block)) == "pg.timeout"
    assert (await written(postgres, block)).status == "success"


@pytest.mark.stack
async def test_vectors_are_appended_updated_and_keep_what_is_not_named(settings: Settings) -> None:
    tool = PostgresTool(
        ConfiguredCredentials({"pg": {"dsn": author_dsn(settings)}}, {}), deployment="test"
    )
    block = {"storage": "vector", "table": "kept_vectors", "data": "{{ result }}"}
    first = [{"id": "a", "vector": [1, 2], "meta": {"n": 1}}, {"id": "b", "vector": [3, 4]}]
    last = [{"id": "a", "vector": [7, 8]}, {"id": "c", "vector": [9, 9], "meta": {"n": 3}}]
    db = await asyncpg.connect(author_dsn(settings))
    try:
        await db.execute(
            "CREATE TABLE kept_vectors (id text PRIMARY KEY, embedding vector(2), meta jsonb)"
        )
        await written(tool, {**block, "mode": "append"}, result=first)
        await written(tool, {**block, "mode": "update"}, result={"id": "b", "vector": [5, 6]})
        await written(tool, block, result=last)
        found = await db.fetch("SELECT id, embedding::text, meta FROM kept_vectors ORDER BY id")
    finally:
        await db.execute("DROP TABLE IF EXISTS kept_vectors")
        await db.close()
        await tool.close()
    assert [tuple(row) for row in found] == [
        ("a", "[7,8]", '{"n": 1}'),
        ("b", "[5,6]", None),
        ("c", "[9,9]", '{"n": 3}'),
    ]
