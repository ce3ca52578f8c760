"""Sinks to Snowflake: its own client, answered by fakesnow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.worker.sinks import ROWS, Sinks, kind


@pytest.fixture
def snow() -> Iterator[Any]:
    """Snowflake's own client, whose connections are answered by DuckDB."""
    import fakesnow
    import snowflake.connector

    with fakesnow.patch(), snowflake.connector.connect(database="db", schema="s") as session:
        session.cursor().execute("CREATE TABLE t (id INT, v TEXT)")
        session.cursor().execute(
            'CREATE TABLE w (id INT, v TEXT, w TEXT, "50%" TEXT, "Mixed" TEXT)'
        )
        yield session


LOGIN = {"account": "a", "user": "u", "password": "p", "database": "db", "schema": "s"}


async def test_snowflake_rows_are_merged_by_their_key(tmp_path: Path, snow: Any) -> None:
    sinks = Sinks(tmp_path, {"snow": LOGIN})
    block = {"storage": "snowflake", "auth": "snow", "table": "t", "data": "{{ result }}"}
    upsert = {**block, "mode": "upsert", "key": ["id"]}
    reference = await sinks.twice(upsert, result=ROWS)
    assert reference == {"store": "snowflake", "key": "t", "range": "id:1-2"}
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


async def test_a_column_that_a_row_lacks_is_left_alone(tmp_path: Path, snow: Any) -> None:
    sinks = Sinks(tmp_path, {"snow": LOGIN})
    block = {"storage": "snowflake", "auth": "snow", "table": "w", "data": "{{ result }}"}
    upsert, update = ({**block, "mode": mode, "key": "id"} for mode in ("upsert", "update"))
    await sinks.twice(upsert, result=[{"id": 1, "v": "v", "w": "w"}, {"id": 1, "v": "x", "w": "w"}])
    await sinks.twice(upsert, result=[{"id": 1, "v": "a"}, {"id": 2, "w": "b"}])
    await sinks.twice(update, result=[{"id": 2, "v": "c"}, {"id": 3, "v": "d"}])
    for mode in ("append", "update", "upsert"):
        await sinks.twice({**block, "mode": mode, "key": "id"}, result=[])
    found = snow.cursor().execute("SELECT id, v, w FROM w ORDER BY id").fetchall()
    assert found == [(1, "a", "w"), (2, "c", "b")]
    for result in ({"id": 1}, {"v": 1}):
        assert kind(await sinks.once(update, result=result)) == "snowflake.config"


async def test_a_percent_sign_is_the_authors(tmp_path: Path, snow: Any) -> None:
    sinks = Sinks(tmp_path, {"snow": LOGIN})
    block = {"storage": "snowflake", "auth": "snow", "table": "w", "data": "{{ result }}"}
    await sinks.once(block, result={"id": 1, "v": "100%s", "50%": "%", '"Mixed"': "m"})
    await sinks.twice({**block, "mode": "upsert", "key": "id"}, result={"id": 1, "50%": "%%"})
    statement = {"storage": "snowflake", "auth": "snow", "params": {"w": "%"}}
    statement |= {"statement": "UPDATE w SET w = :w WHERE v LIKE '100%'"}
    await sinks.twice(statement)
    plain = {"storage": "snowflake", "auth": "snow"}
    await sinks.twice({**plain, "statement": "UPDATE w SET v = 'x' WHERE v LIKE '100%'"})
    found = snow.cursor().execute('SELECT v, w, "50%", "Mixed" FROM w').fetchall()
    assert found == [("x", "%", "%%", "m")]
