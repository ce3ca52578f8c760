"""The postgres tool against a real server: values, fences, batches, and who is to blame."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from typing import Any

import asyncpg
import pytest

from streams.settings import Settings
from streams.worker.errors import SaveFailed, TargetUnavailable
from streams.worker.port import Call, Config, Fence, Outcome, Saved
from streams.worker.tools import pg_pools
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres import PostgresTool
from tests.logs import dsn

pytestmark = pytest.mark.stack

CALL = Call(
    tenant_id="acme",
    organization_id="care",
    execution_id=1,
    step="s",
    task="t",
    entity_id=2,
    attempt=1,
    stage_id=7,
)
STRINGS = ["12345", "1e5", "None", "true", "", "null", "\\N", "a\tb\nc\\d\re", "it's", 'q"', "é☃"]
_ids = count(100)


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    await connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, v text)")
    yield connection
    await connection.close()


@pytest.fixture
async def tool(database: Settings) -> AsyncIterator[PostgresTool]:
    made = PostgresTool(
        ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {}), deployment="test"
    )
    yield made
    await made.close()


@pytest.fixture
def call() -> Call:
    """A call that no other test has made."""
    return replace(CALL, entity_id=next(_ids))


@pytest.fixture
def fence() -> Fence:
    return Fence(deployment="test", stage_id=7, frame_id=next(_ids), task="save")


def sql(command: str, **more: Any) -> Config:
    return {"auth": "pg", "command": command, **more}


def rows(outcome: Outcome) -> Any:
    assert outcome.status == "success", outcome.error
    data: Any = outcome.data
    return data["rows"]


INSERT = "INSERT INTO t (id, v) VALUES (:id, :v)"
UPSERT = INSERT + " ON CONFLICT (id) DO UPDATE SET v = excluded.v"


def calls(*values: tuple[Any, Any], command: str = INSERT) -> list[Config]:
    return [sql(command, params={"id": id, "v": v}) for id, v in values]


# ---------------------------------------------------------------- values


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


# ---------------------------------------------------------------- failures


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


# ---------------------------------------------------------------- fences of single calls


async def test_a_later_attempt_adopts_the_answer_and_writes_nothing(
    tool: PostgresTool, db: asyncpg.Connection, call: Call
) -> None:
    config = sql(
        "INSERT INTO t SELECT n, 'x' FROM generate_series(1, :n) n RETURNING id", params={"n": 3}
    )
    first = await tool.run(config, call)
    second = await tool.run(config, replace(call, attempt=2))
    told = {"rows": [{"id": 1}, {"id": 2}, {"id": 3}], "row_count": 3}
    told |= {"store": "db", "key": "t", "range": "id:1-3"}
    assert first.data == second.data == told
    assert second.meta == {"fence": "adopted"}
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


# ---------------------------------------------------------------- batches


@pytest.mark.parametrize("command", [INSERT, UPSERT], ids=["insert", "upsert"])
async def test_a_batch_and_its_fence_are_found_by_the_next_attempt(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, command: str
) -> None:
    saved = Saved(row_count=20, cursor={"to": 20}, output={"uri": "noetl://x", "sha256": "d"})
    batch = calls(*((n, "a") for n in range(20)), command=command)
    assert await tool.find(batch[0], [fence]) == {}
    assert await tool.save([(fence, batch)], saved) == {}
    assert await tool.find(batch[0], [fence]) == {fence: saved}
    other = Saved(row_count=5, cursor={"to": 5})
    assert await tool.save([(fence, calls((99, "b")))], other) == {fence: saved}
    assert await db.fetchval("SELECT count(*) FROM t") == 20


async def test_two_attempts_saving_at_once_write_the_rows_once(
    database: Settings, db: asyncpg.Connection, fence: Fence
) -> None:
    await db.execute("DROP TABLE IF EXISTS noetl_fence; ALTER TABLE t DROP CONSTRAINT t_pkey")
    credentials = ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {})
    tools = [PostgresTool(credentials, deployment="test") for _ in range(4)]
    try:
        batch = calls(*((n, "a") for n in range(50)))
        found = await asyncio.gather(
            *(
                one.save([(fence, batch)], Saved(row_count=50, cursor={"attempt": n}))
                for n, one in enumerate(tools)
            )
        )
    finally:
        for one in tools:
            await one.close()
    assert await db.fetchval("SELECT count(*) FROM t") == 50
    assert sum(not one for one in found) == 1
    winner = next(n for n, one in enumerate(found) if not one)
    assert all(one[fence].cursor == {"attempt": winner} for one in found if one)


async def test_batches_of_several_tasks_go_in_one_transaction(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    second = replace(fence, task="other")
    bad = [(fence, calls((1, "a"), (2, "b"))), (second, calls((3, "c"), (1, "again")))]
    with pytest.raises(SaveFailed) as refused:
        await tool.save(bad, Saved(row_count=2))
    assert (refused.value.task, refused.value.row) == ("other", 1)
    assert await db.fetchval("SELECT count(*) FROM t") == 0
    assert await tool.find(bad[0][1][0], [fence, second]) == {}


@pytest.mark.parametrize("bad", [0, 17, 29])
@pytest.mark.parametrize(
    ("command", "value"), [(INSERT, "not a number"), (UPSERT, "not a number"), (INSERT, 5)]
)
async def test_the_row_to_blame_is_named(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence, command: str, value: Any, bad: int
) -> None:
    await db.execute("INSERT INTO t VALUES (5, 'there already')")
    batch = calls(*((n + 100, "a") for n in range(30)), command=command)
    batch[bad] = calls((value, "a"), command=command)[0]
    with pytest.raises(SaveFailed, match=f"row {bad} of the batch") as refused:
        await tool.save([(fence, batch)], Saved(row_count=30))
    assert refused.value.row == bad
    await tool.save([(fence, batch[:bad] + batch[bad + 1 :])], Saved(row_count=29))
    assert await db.fetchval("SELECT count(*) FROM t") == 30


async def test_a_call_with_a_bad_row_among_its_rows_is_named(
    tool: PostgresTool, fence: Fence, db: asyncpg.Connection
) -> None:
    good, bad = [{"id": n, "v": ""} for n in range(9)], [{"id": 10, "v": ""}, {"id": "x", "v": ""}]
    with pytest.raises(SaveFailed) as refused:
        await tool.save(
            [(fence, [sql(INSERT, rows=good), sql(INSERT, rows=bad)])], Saved(row_count=2)
        )
    assert refused.value.row == 1
    assert await db.fetchval("SELECT count(*) FROM t") == 0


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("text", ["nul \x00", "half \ud800"])
async def test_text_that_postgres_cannot_hold_is_named(
    tool: PostgresTool, fence: Fence, text: str
) -> None:
    batch = calls(*((n, "a") for n in range(20)))
    batch[7] = calls((7, text))[0]
    with pytest.raises(SaveFailed) as refused:
        await tool.save([(fence, batch)], Saved(row_count=20))
    assert refused.value.row == 7


async def test_a_credential_that_is_not_there_fails_the_save(
    tool: PostgresTool, fence: Fence
) -> None:
    config = {**calls((1, "a"))[0], "auth": "nobody"}
    with pytest.raises(SaveFailed, match="nobody"):
        await tool.find(config, [fence])
    with pytest.raises(SaveFailed, match="nobody"):
        await tool.save([(fence, [config])], Saved(row_count=1))


async def test_a_row_without_a_value_is_named(tool: PostgresTool, fence: Fence) -> None:
    batch = [*calls((1, "a")), sql(INSERT, params={"id": 2})]
    with pytest.raises(SaveFailed, match=":v") as refused:
        await tool.save([(fence, batch)], Saved(row_count=2))
    assert refused.value.row == 1


async def test_a_statement_that_is_wrong_for_all_rows_names_none(
    tool: PostgresTool, fence: Fence
) -> None:
    batch = calls((1, "a"), command="INSERT INTO nowhere (id, v) VALUES (:id, :v)")
    with pytest.raises(SaveFailed, match="nowhere") as refused:
        await tool.save([(fence, batch)], Saved(row_count=1))
    assert refused.value.row is None


async def test_the_same_key_twice_in_an_upsert_keeps_the_last(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    await tool.save([(fence, calls((1, "a"), (1, "b"), command=UPSERT))], Saved(row_count=2))
    assert await db.fetchval("SELECT v FROM t") == "b"


async def test_a_view_takes_a_batch_too(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    await db.execute("CREATE OR REPLACE VIEW v AS SELECT * FROM t")
    batch = calls(*((n, "a") for n in range(20)), command=INSERT.replace("INTO t", "INTO v"))
    await tool.save([(fence, batch)], Saved(row_count=20))
    assert await db.fetchval("SELECT count(*) FROM t") == 20
    await db.execute("DROP VIEW v")


async def test_an_expression_over_a_parameter_is_kept_in_a_batch(
    tool: PostgresTool, db: asyncpg.Connection, fence: Fence
) -> None:
    command = "INSERT INTO public.\"t\" (id, v) VALUES (:id + 1, upper(:v) || ':v')"
    await tool.save([(fence, calls((1, "a"), (2, "b"), command=command))], Saved(row_count=2))
    assert [tuple(row) for row in await db.fetch("SELECT * FROM t ORDER BY id")] == [
        (2, "A:v"),
        (3, "B:v"),
    ]


async def test_a_database_that_nobody_names_any_more_is_closed(
    database: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_pools, "UNUSED_S", -1.0)
    pools = pg_pools.PostgresPools(ConfiguredCredentials({}, {}))
    try:
        first = await pools.database({"dsn": dsn(database)}, "t", "o")
        async with first.connection() as connection:
            other = {"dsn": dsn(database, "read")}
            await pools.database(other, "t", "o")
            assert await connection.fetchval("SELECT 1") == 1  # in use, so it was left alone
        await pools.database({"dsn": dsn(database, "append")}, "t", "o")
        again = await pools.database({"dsn": dsn(database)}, "t", "o")
        assert again is not first
        async with again.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1
    finally:
        await pools.close()
