"""Sinks to Snowflake: its own client, answered by fakesnow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sinks import ROWS, Sinks, kind


@pytest.fixture
def snow() -> Iterator[Any]:
    """Snowflake's own client, whose connections are answered by DuckDB."""
    import fakesnow
    import snowflake.connector

    with fakesnow.patch(), snowflake.connector.connect(database="db", schema="s") as session:
        session.cursor().execute("CREATE TABLE t (id INT, v TEXT)")
        yield session


async def test_snowflake_rows_are_merged_by_their_key(tmp_path: Path, snow: Any) -> None:
    login = {"account": "a", "user": "u", "password": "p", "database": "db", "schema": "s"}
    sinks = Sinks(tmp_path, {"snow": login})
    block = {"storage": "snowflake", "auth": "snow", "table": "t", "data": "{{ result }}"}
    upsert = {**block, "mode": "upsert", "key": ["id"]}
    told = await sinks.twice(upsert, result=ROWS)
    assert told == {"store": "snowflake", "key": "t", "range": "id:1-2"}
    await sinks.twice({**block, "mode": "update", "key": "id"}, result={"id": 1, "v": "None"})
    statement = {"storage": "snowflake", "auth": "snow", "params": {"id": 2, "v": "it's"}}
    statement |= {"statement": "UPDATE t SET v = :v WHERE id = :id"}
    await sinks.twice(statement)
    found = snow.cursor().execute("SELECT id, v FROM t ORDER BY id").fetchall()
    assert found == [(1, "None"), (2, "it's")]
    await sinks.twice({**block, "mode": "overwrite"}, result=[{"id": 3, "v": "x"}])
    await sinks.once(block, result=[{"id": 3, "v": "x"}])
    assert snow.cursor().execute("SELECT id FROM t").fetchall() == [(3,), (3,)]
    outcome = await sinks.once({**block, "table": "nowhere"}, result=[{"id": 3}])
    assert kind(outcome) == "snowflake.sql"
    hostile = {**block, "table": "t; DROP TABLE t"}
    assert kind(await sinks.once(hostile, result=[{"id": 3}])) == "snowflake.config"
