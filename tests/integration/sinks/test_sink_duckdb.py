"""Sinks to DuckDB."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streams.worker.errors import TargetUnavailable
from tests.support.worker.sinks import Sinks, kind

HELD = "import duckdb, sys; s = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"


def ask(place: Path, *statements: str) -> list[Any]:
    with duckdb.connect(str(place)) as session:
        for statement in statements:
            answer = session.execute(statement)
        return answer.fetchall()


async def test_duckdb_rows_are_there_once(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x.duckdb"
    with duckdb.connect(str(place)) as session:
        session.execute("CREATE TABLE t (id INT PRIMARY KEY, v JSON); CREATE TABLE l (v TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x.duckdb"}, "data": "{{ result }}"}
    upsert = {**block, "table": "t", "mode": "upsert", "key": ["id"]}
    reference = await sinks.twice(upsert, result=[{"id": 1, "v": {"a": 1}}, {"id": 2, "v": [1]}])
    assert reference == {"store": "duckdb", "key": "t", "range": "id:1-2"}
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


async def test_a_column_that_a_row_lacks_is_left_alone(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x"
    ask(place, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT, w TEXT, c1 TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": "{{ result }}"}
    upsert, update = ({**block, "mode": mode, "key": "id"} for mode in ("upsert", "update"))
    await sinks.twice(upsert, result=[{"id": n, "v": "v", "w": "w", "c1": "c"} for n in (1, 2)])
    await sinks.twice(upsert, result=[{"id": 1, "v": "a"}, {"id": 2, "w": "b"}])
    reference = await sinks.twice(update, result=[{"id": 2, "v": "c"}, {"id": 9, "w": "d"}])
    assert reference["range"] == "rows:1"
    assert ask(place, "FROM t ORDER BY id") == [(1, "a", "w", "c"), (2, "c", "b", "c")]
    keyless = await sinks.once(upsert, result=[{"id": 1, "v": "x"}, {"v": "y"}])
    nothing_to_set = await sinks.once(update, result={"id": 1})
    assert kind(keyless) == kind(nothing_to_set) == "duckdb.config"


async def test_of_a_key_that_comes_twice_the_last_row_stays(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x"
    ask(place, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT, w TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": "{{ result }}"}
    upsert, update = ({**block, "mode": mode, "key": "id"} for mode in ("upsert", "update"))
    await sinks.twice(upsert, result=[{"id": 1, "v": "a"}, {"id": "1", "v": "b"}])
    assert ask(place, "FROM t") == [(1, "b", None)]
    turns = [{"id": 1, "v": "a"}, {"id": 1, "v": "b", "w": "w"}, {"id": 1, "v": "c"}]
    await sinks.twice(update, result=turns)
    assert ask(place, "FROM t") == [(1, "c", "w")]
    for mode in ("append", "update", "upsert"):
        await sinks.twice({**block, "mode": mode, "key": "id"}, result=[])
    assert ask(place, "FROM t") == [(1, "c", "w")]


async def test_a_value_is_read_by_the_type_of_its_column(sinks: Sinks, tmp_path: Path) -> None:
    place = tmp_path / "x"
    ask(place, "CREATE TABLE t (i INT, d DOUBLE, v TEXT, j JSON, h HUGEINT, l INT[], b BOOLEAN)")
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": "{{ result }}"}
    rows: list[dict[str, Any]] = [
        {"i": "1", "d": 1, "v": 1, "j": 1, "h": 2**70, "l": [1, 2], "b": True},
        {"i": True, "d": 1.5, "v": {"a": 1}, "j": {"a": [1]}, "h": 1, "l": None, "b": "false"},
        {"i": 3, "v": "1e5", "j": '"text"'},
    ]
    await sinks.twice(block, result=rows)
    assert ask(place, "FROM t") == [
        (1, 1.0, "1", "1", 2**70, [1, 2], True),
        (1, 1.5, '{"a":1}', '{"a":[1]}', 1, None, False),
        (3, None, "1e5", '"text"', None, None, None),
    ]
    assert kind(await sinks.once(block, result={"i": "x"})) == "duckdb.conversion"
    assert kind(await sinks.once(block, result={"v": "\ud800"})) == "duckdb.value"


@pytest.mark.timeout(60)
async def test_many_rows_are_written_at_once(sinks: Sinks, tmp_path: Path) -> None:
    ask(tmp_path / "x", "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": "{{ result }}"}
    rows = [{"id": n, "v": "v"} for n in range(50_000)]  # one by one this takes minutes
    for mode in ("append", "upsert", "update"):
        await sinks.twice({**block, "mode": mode, "key": "id"}, result=rows)
    assert ask(tmp_path / "x", "SELECT count(*) FROM t") == [(50_000,)]


async def test_objects_of_a_statement_are_json(sinks: Sinks, tmp_path: Path) -> None:
    ask(tmp_path / "x", "CREATE TABLE t (v TEXT, j JSON)")
    block = {"storage": "duckdb", "spec": {"database": "x"}, "params": {"v": "{{ result }}"}}
    await sinks.twice({**block, "statement": "INSERT INTO t VALUES (:v, :v)"}, result={"a": [1]})
    assert ask(tmp_path / "x", "FROM t") == [('{"a":[1]}', '{"a":[1]}')]


async def test_a_file_that_another_process_has_open_is_unavailable(
    sinks: Sinks, tmp_path: Path
) -> None:
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": {"a": 1}}
    held = [sys.executable, "-c", HELD, str(tmp_path / "x")]
    holder = await asyncio.create_subprocess_exec(*held, stdin=PIPE, stdout=PIPE)
    assert holder.stdout is not None
    await holder.stdout.readline()
    with pytest.raises(TargetUnavailable):
        await sinks.once(block)
    await holder.communicate(b"")
    (tmp_path / "clock").write_text("no database")
    (tmp_path / "lock").mkdir()
    for name in ("clock", "lock"):
        assert kind(await sinks.once({**block, "spec": {"database": name}})) == "duckdb.io"
    assert kind(await sinks.once({**block, "spec": {"database": "clock/x"}})) == "duckdb.os"


async def test_a_file_whose_fences_are_older_is_written_too(sinks: Sinks, tmp_path: Path) -> None:
    fences = "CREATE TABLE noetl_fence (deployment TEXT, name TEXT, PRIMARY KEY (deployment, name))"
    ask(
        tmp_path / "x",
        fences,
        "INSERT INTO noetl_fence VALUES ('a', 'b')",
        "CREATE TABLE t (a INT)",
    )
    block = {"storage": "duckdb", "spec": {"database": "x"}, "table": "t", "data": {"a": 1}}
    await sinks.twice(block)
    assert ask(tmp_path / "x", "FROM t") == [(1,)]
