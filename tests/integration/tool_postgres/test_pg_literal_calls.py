"""Commands of NoETL's spelling on a real server: every statement's answer, and one fence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from streams.playbook.spelling import Spelling
from streams.settings import Settings
from streams.worker.errors import SaveFailed
from streams.worker.port import Call, Fence, Outcome, Saved
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.tool import PostgresTool
from streams.worker.tools.script import Scripts
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack


@pytest.fixture
def noetl(call: Call) -> Call:
    return replace(call, spelling=Spelling.NOETL, partition="0.1")


def data(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


def error(outcome: Outcome) -> dict[str, Any]:
    assert outcome.error is not None
    return dict(outcome.error)


SEVERAL = """
-- the facility's rows
CREATE TABLE IF NOT EXISTS u (n int, v jsonb);
INSERT INTO t VALUES (1, 'it''s :x'), (2, '50%; {"a":1}');
DO $$ BEGIN INSERT INTO u VALUES (1, '{"a":1}'::jsonb); END $$;
WITH x AS (UPDATE t SET v = v || '!' RETURNING id, v) SELECT * FROM x ORDER BY id;
SELECT v -> 'a' AS a, 1.10::numeric AS d FROM u WHERE false
"""


async def test_every_statement_has_its_answer_and_the_last_is_at_the_top(
    tool: PostgresTool, db: asyncpg.Connection, noetl: Call
) -> None:
    await db.execute("DROP TABLE IF EXISTS u")
    found = data(await tool.run({"auth": "pg", "command": SEVERAL}, noetl))
    rows = [{"id": 1, "v": "it's :x!"}, {"id": 2, "v": '50%; {"a":1}!'}]
    assert found["command_3"] == {
        "status": "success",
        "columns": ["id", "v"],
        "rows": rows,
        "row_count": 2,
        "message": "SELECT 2",
    }
    assert (found["command_1"]["row_count"], found["command_1"]["rows"]) == (2, [])
    assert (found["status"], found["statement_count"]) == ("success", 5)
    assert (found["columns"], found["rows"], found["row_count"]) == (["a", "d"], [], 0)


async def test_a_second_attempt_gets_the_first_ones_answers_and_writes_nothing(
    tool: PostgresTool, db: asyncpg.Connection, noetl: Call
) -> None:
    config = {"auth": "pg", "query": "INSERT INTO t VALUES (1, 'a'); SELECT count(*) AS n FROM t"}
    first = await tool.run(config, noetl)
    again = await tool.run(config, replace(noetl, attempt=2))
    assert data(again) == data(first)
    assert (first.meta, again.meta) == ({}, {"fence": "adopted"})
    assert data(again)["rows"] == [{"n": 1}]
    assert await db.fetchval("SELECT count(*) FROM t") == 1
    retried = await tool.run(
        {"auth": "pg", "query": "UPDATE t SET v = v || 'b'"}, replace(noetl, tries=2)
    )
    assert data(retried)["row_count"] == 1


async def test_a_failed_statement_undoes_the_whole_command(
    tool: PostgresTool, db: asyncpg.Connection, noetl: Call
) -> None:
    command = "INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'b')"
    outcome = await tool.run({"auth": "pg", "commands": command}, noetl)
    assert (error(outcome)["kind"], error(outcome)["code"]) == ("db_constraint", "23505")
    assert error(outcome)["retryable"] is False
    assert outcome.detail == {"pg": {"code": "23505"}}
    assert await db.fetchval("SELECT count(*) FROM t") == 0


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("SELECT 1, FROM t", "db_statement"),
        ("SELECT 1 / 0", "db_data"),
        ("DO $$ BEGIN RAISE EXCEPTION 'no'; END $$", "db_error"),
        ("SELECT pg_sleep(5)", "db_timeout"),
    ],
)
@pytest.mark.usefixtures("db")
async def test_errors_are_named_by_what_is_wrong(
    tool: PostgresTool, noetl: Call, command: str, kind: str
) -> None:
    outcome = await tool.run({"auth": "pg", "command": command, "timeout": 1}, noetl)
    assert error(outcome)["kind"] == kind


async def test_statements_that_refuse_a_transaction_run_outside_of_it(
    tool: PostgresTool, db: asyncpg.Connection, noetl: Call
) -> None:
    command = "INSERT INTO t VALUES (1, 'a'); VACUUM t; CREATE INDEX CONCURRENTLY ON t (v); "
    found = data(await tool.run({"auth": "pg", "command": command + "SELECT 1 AS n"}, noetl))
    assert (found["statement_count"], found["command_1"]["message"]) == (4, "VACUUM")
    assert found["rows"] == [{"n": 1}]
    undone = "BEGIN; DELETE FROM t; ROLLBACK"
    data(await tool.run({"auth": "pg", "command": undone}, replace(noetl, partition="0.2")))
    assert await db.fetchval("SELECT count(*) FROM t") == 1


async def test_begin_and_commit_of_an_author_do_not_split_the_transaction(
    tool: PostgresTool, db: asyncpg.Connection, noetl: Call
) -> None:
    command = "BEGIN; INSERT INTO t VALUES (1, 'a'); COMMIT; INSERT INTO t VALUES (1, 'b')"
    outcome = await tool.run({"auth": "pg", "command": command}, noetl)
    assert error(outcome)["code"] == "23505"
    assert await db.fetchval("SELECT count(*) FROM t") == 0


@pytest.mark.usefixtures("db")
async def test_a_list_of_params_is_bound_and_a_mapping_refused(
    tool: PostgresTool, noetl: Call
) -> None:
    command = "SELECT $1::int + 1 AS n, $2::text[] AS l"
    found = data(await tool.run({"auth": "pg", "query": command, "params": ["1", ["a"]]}, noetl))
    assert found["rows"] == [{"n": 2, "l": ["a"]}]
    outcome = await tool.run({"auth": "pg", "query": "SELECT 1", "params": {"a": 1}}, noetl)
    assert "'params' must be a list" in error(outcome)["message"]


@pytest.mark.usefixtures("db")
async def test_a_script_stands_for_the_command(
    database: Settings, noetl: Call, tmp_path: Path
) -> None:
    (tmp_path / "one.sql").write_text("SELECT 1 AS a; SELECT 2 AS b;")
    credentials = ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {})
    tool = PostgresTool(credentials, deployment="test", scripts=Scripts(credentials))
    script: dict[str, Any] = {"uri": str(tmp_path / "one.sql"), "source": {"type": "file"}}
    try:
        assert data(await tool.run({"credential": "pg", "script": script}, noetl))["rows"] == [
            {"b": 2}
        ]
    finally:
        await tool.close()


def saves(*texts: str) -> list[dict[str, Any]]:
    return [{"auth": "pg", "command": text} for text in texts]


async def test_the_saves_of_a_frame_go_in_one_transaction_once(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    texts = [f"INSERT INTO t VALUES ({n}, 'x;y'); UPDATE t SET v = v || '!' -- {n}" for n in (1, 2)]
    batch, saved = saves(*texts), Saved(row_count=2, output={"final": True})
    assert await tool.save([(fence, batch)], saved, Spelling.NOETL) == {}
    again = await tool.save([(fence, batch)], Saved(row_count=9), Spelling.NOETL)
    assert again == {fence: saved}
    rows = await db.fetch("SELECT id, v FROM t ORDER BY id")
    assert [tuple(row) for row in rows] == [(1, "x;y!!"), (2, "x;y!")]


async def test_the_rows_that_the_database_rejects_are_named_and_nothing_is_written(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    good = [f"INSERT INTO t VALUES ({n}, 'v')" for n in range(4)]
    batch = saves(good[0], "INSERT INTO t VALUES (", good[1], "INSERT INTO nothing", good[2])
    with pytest.raises(SaveFailed, match="syntax error") as refused:
        await tool.save([(fence, batch)], Saved(row_count=5), Spelling.NOETL)
    assert refused.value.rows == (1, 3)
    assert await db.fetchval("SELECT count(*) FROM t") == 0
    assert await tool.find(batch[0], [fence]) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("INSERT INTO t VALUES (1, 'a\0b')", "NUL"),
        ("VACUUM t", "one transaction"),
        ("BEGIN; INSERT INTO t VALUES (1, 'a'); COMMIT", "one transaction"),
    ],
)
async def test_a_command_that_cannot_share_a_transaction_fails_its_row(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, text: str, why: str
) -> None:
    batch = saves("INSERT INTO t VALUES (7, 'v')", text)
    with pytest.raises(SaveFailed, match=why) as refused:
        await tool.save([(fence, batch)], Saved(row_count=2), Spelling.NOETL)
    assert refused.value.rows == (1,)
    assert await db.fetchval("SELECT count(*) FROM t") == 0
