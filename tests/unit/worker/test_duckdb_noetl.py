"""DuckDB and noop in NoETL's spelling: tables pass between steps of an execution."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streams.playbook.spelling import Spelling
from streams.worker.errors import BadConfig, TargetUnavailable
from streams.worker.port import Call, Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.duckdb import DuckdbTool
from streams.worker.tools.duckdb_files import UNUSED_S, remove_unused
from streams.worker.tools.duckdb_secrets import SessionSecret, _statement, create_secrets
from streams.worker.tools.noop import NoopTool
from tests.support.worker.tool_calls import CALL

NOETL = replace(CALL, spelling=Spelling.NOETL)
V = duckdb.__version__


@pytest.fixture
def tool(tmp_path: Path) -> DuckdbTool:
    return DuckdbTool(ConfiguredCredentials({}, {}), folder=tmp_path / "duckdb")


async def run(tool: DuckdbTool, call: Call = NOETL, **config: Any) -> Outcome:
    return await tool.run(config, call)


def data(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


async def test_tables_pass_between_the_steps_of_one_execution(tool: DuckdbTool) -> None:
    made = data(await run(tool, command="CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)"))
    assert (made["rows"], made["row_count"], made["statement_count"]) == ([], 2, 2)
    found = data(await run(tool, query="SELECT a, ':b' AS b FROM t WHERE a > 1"))
    assert found["columns"] == ["a", "b"]
    assert found["rows"] == [{"a": 2, "b": ":b"}]
    other = await run(tool, replace(NOETL, execution_id=2), query="SELECT * FROM t")
    assert other.error is not None
    assert other.error["kind"] == "duckdb.catalog"


async def test_a_database_of_the_task_is_used_instead(tool: DuckdbTool, tmp_path: Path) -> None:
    await run(
        tool, commands=["CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"], database=":memory:"
    )
    assert (await run(tool, query="SELECT * FROM t", database=":memory:")).status == "error"
    place = str(tmp_path / "own.duckdb")
    await run(tool, command="CREATE TABLE t AS SELECT 1 AS a", database=place)
    assert data(await run(tool, query="FROM t", database=place))["rows"] == [{"a": 1}]


async def test_calls_of_one_execution_take_turns(tool: DuckdbTool) -> None:
    await run(tool, command="CREATE TABLE n (v INT); INSERT INTO n VALUES (0)")
    done = await asyncio.gather(*(run(tool, command="UPDATE n SET v = v + 1") for _ in range(8)))
    assert {one.status for one in done} == {"success"}
    assert data(await run(tool, query="SELECT v FROM n"))["rows"] == [{"v": 8}]


async def test_a_file_that_another_process_has_open_is_waited_for(
    tool: DuckdbTool, tmp_path: Path
) -> None:
    await run(tool, command="CREATE TABLE t (a INT)")
    [file] = (tmp_path / "duckdb").glob("*.duckdb")
    code = f"import duckdb, sys; c = duckdb.connect({str(file)!r}); print(1, flush=True); input()"
    pipe = asyncio.subprocess.PIPE

    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=pipe, stdout=pipe
    )
    assert child.stdout is not None
    await child.stdout.readline()
    try:
        with pytest.raises(TargetUnavailable, match="another process has it open"):
            await run(tool, query="SELECT 1")
    finally:
        child.kill()
        await child.wait()


def test_files_of_old_executions_are_removed(tmp_path: Path) -> None:
    for name, age_s in (("1", UNUSED_S + 60), ("2", 60)):
        (tmp_path / f"{name}.duckdb").touch()
        os.utime(tmp_path / f"{name}.duckdb", (0, 1e9 - age_s))
    remove_unused(tmp_path, 1e9)
    assert [one.name for one in tmp_path.iterdir()] == ["2.duckdb"]


async def test_an_unknown_tool_of_a_secret_is_refused(tool: DuckdbTool) -> None:
    auth = {"pg": {"source": "credential", "tool": "oracle", "key": "x"}}
    outcome = await run(tool, command="SELECT 1", auth=auth)
    assert outcome.error is not None
    assert "'tool' is 'oracle', not one of postgres" in str(outcome.error["message"])


def test_an_extension_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streams.worker.tools.duckdb_extensions.packaged_extension", lambda _name: None
    )
    session = duckdb.connect(config={"custom_extension_repository": "/nowhere"})
    session.execute("SET extension_directory = '/nonexistent'")
    secret = SessionSecret("pg", "postgres", {"host": "h"})
    with pytest.raises(BadConfig, match="extension 'postgres_scanner' is not installed") as raised:
        create_secrets(session, [secret], attaches=True)
    assert f"pip install duckdb-extension-postgres-scanner in the version of DuckDB, {V}" in str(
        raised.value
    )


def test_an_endpoint_is_passed_as_duckdb_takes_it() -> None:
    login = {"key_id": "k", "secret_key": "it's", "endpoint": "http://127.0.0.1:9000/"}
    statement = _statement(SessionSecret("a", "s3", login))
    assert "SECRET 'it''s'" in statement
    assert statement.endswith("ENDPOINT '127.0.0.1:9000', URL_STYLE 'path', USE_SSL false)")
    safe = _statement(SessionSecret("a", "hmac", {**login, "endpoint": "https://store"}))
    assert safe.endswith("ENDPOINT 'store', URL_STYLE 'path')")


async def test_noop_returns_its_result_or_a_status() -> None:
    assert (await NoopTool().run({"result": {"a": 1}}, NOETL)).data == {"a": 1}
    assert (await NoopTool().run({"result": None}, NOETL)).data is None
    assert (await NoopTool().run({}, NOETL)).data == {"status": "ok"}
