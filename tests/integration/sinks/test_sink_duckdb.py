"""Sinks to DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.sinks import Sinks, kind


async def test_duckdb_rows_are_there_once(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x.duckdb"
    with duckdb.connect(str(place)) as session:
        session.execute("CREATE TABLE t (id INT PRIMARY KEY, v JSON); CREATE TABLE l (v TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x.duckdb"}, "data": "{{ result }}"}
    upsert = {**block, "table": "t", "mode": "upsert", "key": ["id"]}
    told = await sinks.twice(upsert, result=[{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [1]}])
    assert told == {"store": "duckdb", "key": "t", "range": "id:1-2"}
    await sinks.twice(upsert, result={"id": 2, "v": {"b": 2}})
    await sinks.twice(
        {**block, "table": "t", "mode": "update", "key": "id"}, result={"id": 1, "v": 0}
    )
    await sinks.twice({**block, "table": "l"}, result={"v": "1e5"})
    statement = {"storage": "duckdb", "spec": {"database": "x.duckdb"}}
    statement |= {"statement": "INSERT INTO l VALUES (:v)", "params": {"v": "None"}}
    await sinks.twice(statement)
    with duckdb.connect(str(place)) as session:
        assert session.execute("SELECT * FROM t ORDER BY id").fetchall() == [
            (1, "0"),
            (2, '{"b":2}'),
        ]
        assert session.execute("SELECT v FROM l").fetchall() == [("1e5",), ("None",)]
    overwritten = {**block, "table": "l", "mode": "overwrite"}
    await sinks.twice(overwritten, result=[{"v": "a"}])
    with duckdb.connect(str(place)) as session:
        assert session.execute("SELECT v FROM l").fetchall() == [("a",)]


async def test_a_table_that_is_not_there_is_said(sinks: Sinks) -> None:
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "nowhere", "data": {"a": 1}}
    outcome = await sinks.once(block)
    assert kind(outcome) == "duckdb.catalog"
    assert "nowhere" in str(outcome.error)


async def test_a_statement_reaches_no_other_file(sinks: Sinks, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    block = {
        "storage": "duckdb",
        "spec": {"database": "x"},
        "statement": f"COPY (SELECT 1) TO '{other}'",
    }
    outcome = await sinks.once(block)
    assert kind(outcome) == "duckdb.permission"
    assert not other.exists()
