"""Sinks to Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import orjson
import pytest

from streams.playbook.parse import parse
from streams.settings import Settings
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres import PostgresTool
from tests.logs import dsn
from tests.sinks import call, kind


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    await connection.execute(
        "DROP TABLE IF EXISTS hello; CREATE TABLE hello (id text PRIMARY KEY, v text, j jsonb)"
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
