"""Single calls of the postgres tool: values, failures, and fences that let them happen once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from streams.payload.arrow.rows import encode_rows, read_table
from streams.settings import Settings
from streams.worker.errors import TargetUnavailable
from streams.worker.port import Call, Fence, Saved
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.log.databases import dsn
from tests.support.worker.postgres_tool import INSERT, STRINGS, UPSERT, calls, rows, sql

pytestmark = pytest.mark.stack


@pytest.mark.usefixtures("db")
async def test_strings_arrive_as_they_were_sent(tool: PostgresTool, call: Call) -> None:
    for number, text in enumerate(STRINGS):
        partition = f"{number}.1"
        await tool.run(
            sql(INSERT, params={"id": number, "v": text}), replace(call, partition=partition)
        )
    found = rows(await tool.run(sql("SELECT v FROM t ORDER BY id"), call))
    assert [row["v"] for row in found] == STRINGS


@pytest.mark.parametrize("command", [INSERT, UPSERT, INSERT + " RETURNING id"])
async def test_strings_arrive_as_they_were_sent_in_a_batch(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, command: str
) -> None:
    batch = calls(*enumerate(STRINGS), command=command)
    await tool.save([(fence, batch)], Saved(row_count=len(batch)))
    assert [row["v"] for row in await db.fetch("SELECT v FROM t ORDER BY id")] == STRINGS


TYPED: list[tuple[str, Any, Any]] = [
    ("int4", 5, 5),
    ("int4", "5", 5),
    ("int8", 2**62, 2**62),
    ("float8", 1.5, 1.5),
    ("float8", 1, 1.0),
    ("numeric", "1.10", "1.10"),
    ("numeric", 0.1, "0.1"),
    ("numeric", 2**70, str(2**70)),
    ("bool", True, True),
    ("bool", "false", False),
    ("date", "2026-01-31", "2026-01-31"),
    ("timestamptz", "2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00+00:00"),
    ("timestamp", "2026-01-31T12:00:00", "2026-01-31T12:00:00"),
    ("timestamptz", "infinity", "infinity"),
    ("time", "12:30", "12:30:00"),
    ("interval", "1 mon 2 days", "1 mon 2 days"),
    ("uuid", "6f0e7a53-9f3e-4a2b-8a11-0123456789ab", "6f0e7a53-9f3e-4a2b-8a11-0123456789ab"),
    ("jsonb", {"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
    ("json", [1, 2], [1, 2]),
    ("jsonb", '{"a": 12345678901234567890123}', {"a": "12345678901234567890123"}),
    ("jsonb", '{"a": 1}', {"a": 1}),
    ("text[]", ["a", None, 'q"\\', ""], ["a", None, 'q"\\', ""]),
    ("int4[]", [1, 2], [1, 2]),
    ("int4[]", [[1], [2]], [[1], [2]]),
    ("text", 5, "5"),
    ("text", True, "true"),
    ("text", {"a": 1}, '{"a":1}'),
    ("bpchar", "abc", "abc"),
    ("bit(3)", "101", None),
    ("bytea", "\\xff00", "\\xff00"),
    ("inet", "10.0.0.1", "10.0.0.1"),
    ("float8", "NaN", "NaN"),
    ("text", None, None),
]


@pytest.mark.parametrize("command", ["VALUES (:v)", "VALUES (:v) ON CONFLICT DO NOTHING"])
@pytest.mark.parametrize(("type", "value", "back"), TYPED)
async def test_json_becomes_the_column_type_and_back(
    tool: PostgresTool,
    db: asyncpg.Connection,
    call: Call,
    type: str,
    value: Any,
    back: Any,
    command: str,
) -> None:
    await db.execute(f"DROP TABLE IF EXISTS typed; CREATE TABLE typed (v {type})")
    insert = f"INSERT INTO typed (v) {command}"
    one = await tool.run(sql(insert, params={"v": value}), call)
    assert one.status == "success", one.error
    many = sql(insert, rows=[{"v": value}] * 9)
    assert (await tool.run(many, replace(call, partition="2"))).status == "success"
    found = rows(await tool.run(sql("SELECT v FROM typed"), call))
    if type.startswith("bit"):
        found, back = await db.fetch("SELECT v::text AS v FROM typed"), value
    assert [row["v"] for row in found] == [back] * 10


async def test_parameters_may_be_a_list(tool: PostgresTool, call: Call) -> None:
    command = "SELECT $2::text || '$1' AS a, $1::date + 1 AS d"
    assert rows(await tool.run(sql(command, params=["2026-01-31", "x"]), call)) == [
        {"a": "x$1", "d": "2026-02-01"}
    ]


async def test_a_statement_between_quotes_and_casts_keeps_its_colons(
    tool: PostgresTool, call: Call
) -> None:
    command = """SELECT ':a' || :a::text /* :b */ AS "x:y" -- :c"""
    assert rows(await tool.run(sql(command, params={"a": "!"}), call)) == [{"x:y": ":a!"}]


@pytest.mark.usefixtures("db")
async def test_the_databases_refusal_is_an_outcome_with_its_code(
    tool: PostgresTool, call: Call
) -> None:
    await tool.run(sql(INSERT, params={"id": 1, "v": "a"}), call)
    outcome = await tool.run(sql(INSERT, params={"id": 1, "v": "b"}), replace(call, partition="2"))
    assert outcome.status == "error"
    assert outcome.error is not None
    assert outcome.error["kind"] == "pg.23505"
    assert outcome.detail == {"pg": {"code": "23505"}}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"auth": "pg"}, "'command' is missing"),
        ({"command": "SELECT 1"}, "needs 'auth'"),
        ({"auth": "pq", "command": "SELECT 1"}, "NOETL_CREDENTIAL_PQ"),
        ({"auth": "pg", "command": "SELECT :a::int", "params": {"b": 1}}, ":a"),
        ({"auth": "pg", "command": "SELECT $1::int", "params": [1, 2]}, "1 parameters"),
    ],
)
async def test_a_bad_configuration_is_said(
    tool: PostgresTool, call: Call, config: dict[str, Any], said: str
) -> None:
    outcome = await tool.run(config, call)
    assert outcome.error is not None
    assert outcome.error["kind"] == "pg.config"
    assert said in str(outcome.error["message"])


async def test_a_slow_statement_is_a_timeout(tool: PostgresTool, call: Call) -> None:
    outcome = await tool.run(sql("SELECT pg_sleep(10)", timeout=0.1), call)
    assert outcome.error is not None
    assert outcome.error["kind"] == "pg.timeout"


async def test_a_database_that_is_down_is_unavailable(tool: PostgresTool, call: Call) -> None:
    with pytest.raises(TargetUnavailable):
        await tool.run({"dsn": "postgresql://a:b@127.0.0.1:9/x", "command": "SELECT 1"}, call)


async def test_a_later_attempt_adopts_the_answer_and_writes_nothing(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    config = sql(
        "INSERT INTO t SELECT n, 'x' FROM generate_series(1, :n) n RETURNING id", params={"n": 3}
    )
    first = await tool.run(config, call)
    second = await tool.run(config, replace(call, attempt=2))
    expected = {"rows": [{"id": 1}, {"id": 2}, {"id": 3}], "row_count": 3}
    expected |= {"store": "db", "key": "t", "range": "id:1-3"}
    assert first.data == second.data == expected
    assert second.meta == {"fence": "adopted"}
    assert await db.fetchval("SELECT count(*) FROM t") == 3


async def test_the_range_is_the_keys_wherever_it_is_returned(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    config = sql("INSERT INTO t VALUES (8, 'c'), (3, 'b'), (5, 'a') RETURNING v, id")
    data: Any = (await tool.run(config, call)).data
    assert data["range"] == "id:3-8"
    assert await db.fetchval("SELECT count(*) FROM t") == 3


async def test_two_attempts_at_once_write_once(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    await db.execute("INSERT INTO t VALUES (1, '0')")
    config = sql("UPDATE t SET v = v::int + 1 WHERE id = :id RETURNING v", params={"id": 1})
    both = await asyncio.gather(*(tool.run(config, replace(call, attempt=n)) for n in (1, 2)))
    assert [rows(one) for one in both] == [[{"v": "1"}]] * 2
    assert await db.fetchval("SELECT v FROM t") == "1"


async def test_a_failed_call_leaves_no_fence(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    assert (await tool.run(sql(INSERT, params={"id": "x", "v": ""}), call)).status == "error"
    assert (await tool.run(sql(INSERT, params={"id": 1, "v": ""}), call)).status == "success"
    assert await db.fetchval("SELECT count(*) FROM t") == 1


async def test_statements_of_one_text_are_all_or_nothing(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    text = "INSERT INTO t VALUES (:id, 'a'); INSERT INTO t VALUES (:id, 'b');"
    assert (await tool.run(sql(text, params={"id": 1}), call)).status == "error"
    assert await db.fetchval("SELECT count(*) FROM t") == 0


async def test_rows_of_one_call_are_written_at_once(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    config = sql(INSERT, params={"v": "same"}, rows=[{"id": n} for n in range(100)])
    data: Any = (await tool.run(config, call)).data
    where = {"store": "db", "key": "t", "range": "rows:100"}
    assert data == {"rows": [], "row_count": 100, **where}
    assert await db.fetchval("SELECT count(*) FROM t WHERE v = 'same'") == 100


async def test_columns_of_a_frame_have_the_types_of_the_query(
    tool: PostgresTool, call: Call
) -> None:
    query = "SELECT 1.50::numeric(9,2) AS sum, '2026-01-31T12:00+02'::timestamptz AS at"
    found = rows(await tool.run(sql(query), call))
    schema = read_table(encode_rows(found).data).schema
    assert [str(kind) for kind in schema.types] == ["decimal128(3, 2)", "timestamp[us, tz=UTC]"]


@pytest.mark.usefixtures("db")
async def test_a_role_that_may_not_use_anothers_fences_is_told_what_to_grant(
    tool: PostgresTool, call: Call, database: Settings
) -> None:
    assert (await tool.run(sql(INSERT, params={"id": 1, "v": "a"}), call)).status == "success"
    credentials = ConfiguredCredentials({"pg": {"dsn": dsn(database, "mirror")}}, {})
    other = PostgresTool(credentials, deployment="test")
    outcome = await other.run(sql(INSERT, params={"id": 2, "v": "b"}), replace(call, task="b"))
    await other.close()
    assert "GRANT SELECT, INSERT, UPDATE ON noetl_fence TO noetl_mirror" in str(outcome.error)
