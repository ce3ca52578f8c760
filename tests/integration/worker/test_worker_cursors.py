"""Loops over a real database: windows of keys, claims, saves behind fences."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from streams.playbook.expressions import compile_value
from streams.playbook.model import Cursor
from streams.settings import Settings
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.frame import FrameRunner
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.log.databases import dsn
from tests.support.worker.memory import Dying, FakeTool, World, loop_step, ok, task

pytestmark = pytest.mark.stack

TABLES = """
CREATE TABLE IF NOT EXISTS source (id int8, name text, at timestamptz, price numeric, by text);
CREATE TABLE IF NOT EXISTS target (id int8 CHECK (id <> 13), name text);
TRUNCATE source, target;
INSERT INTO source SELECT n, 'row ' || n, '2026-01-01'::timestamptz + n * interval '1 day', n / 4.0
FROM generate_series(1, 25) n
"""


class NoCredentials:
    async def find(self, tenant_id: str, organization_id: str, name: str) -> Mapping[str, str]:
        raise AssertionError(name)


@pytest.fixture
async def tool(database: Settings) -> AsyncIterator[PostgresTool]:
    opened = PostgresTool(NoCredentials(), deployment="test")
    yield opened
    await opened.close()


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    try:
        await connection.execute(TABLES)
        await connection.execute("DROP TABLE IF EXISTS noetl_fence")
        yield connection
    finally:
        await connection.close()


def world(database: Settings, tool: PostgresTool, form: str, **config: Any) -> World:
    where = {"dsn": dsn(database)}
    save = task(
        "save",
        "postgres",
        {
            **where,
            "command": "INSERT INTO target (id, name) VALUES (:id, :name)",
            "params": {"id": "{{ item.id }}", "name": "{{ item.name }}"},
        },
        deferrable=True,
    )
    cursor = Cursor(kind="postgres", form=form, config=compile_value({**where, **config}))
    return World(loop_step(save, cursor=cursor), {"postgres": tool})


async def plan(here: World, size: int) -> dict[str, Any]:
    document = {"input": {}, "size": size}
    item = await here.command(command_id=9, tool="cursor.plan", document=document)
    await CommandRunner(here.ports, here.options()).run(item)
    last = await here.last()
    assert last.type == "command.completed", last.error
    found: Any = last.result
    return dict(found["data"])


async def run_windows(here: World, found: dict[str, Any]) -> list[Any]:
    after, committed = None, []
    for number, through in enumerate(found["boundaries"], start=100):
        cursor = {"kind": "keyset", "type": found["type"], "after": after, "through": through}
        item = await here.frame(frame_id=number, cursor=cursor)
        await FrameRunner(here.ports, here.options()).run(item)
        committed.append(await here.last())
        after = through
    return committed


@pytest.mark.parametrize("key", ["id", "name", "at", "price"])
async def test_the_windows_of_any_key_hold_every_row_once(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection, key: str
) -> None:
    await db.execute("DELETE FROM source WHERE id = 13")
    here = world(database, tool, "keyset", query="SELECT * FROM source", key=key)
    found = await plan(here, 10)
    assert found["rows"] == 24
    assert len(found["boundaries"]) == 3
    committed = await run_windows(here, found)
    assert [event.meta["rows"] for event in committed] == [10, 10, 4]
    rows = await db.fetch("SELECT id, name FROM target ORDER BY id")
    assert [(r["id"], r["name"]) for r in rows] == [
        (n, f"row {n}") for n in range(1, 26) if n != 13
    ]


async def test_a_row_that_the_database_refuses_fails_alone(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection
) -> None:
    here = world(database, tool, "keyset", query="SELECT * FROM source", key="id")
    (committed,) = await run_windows(here, await plan(here, 100))
    assert committed.status == "partial"
    assert committed.meta["failed_rows"] == 1
    assert "target_id_check" in committed.result["errors"][0]["error"]
    assert await db.fetchval("SELECT count(*) FROM target") == 24


async def test_rows_without_a_key_are_refused_when_frames_are_planned(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection
) -> None:
    await db.execute("UPDATE source SET name = NULL WHERE id = 3")
    here = world(database, tool, "keyset", query="SELECT * FROM source", key="name")
    with pytest.raises(AssertionError, match="1 rows have no name"):
        await plan(here, 10)


CLAIM = """
WITH mine AS (
  SELECT id FROM source WHERE by IS NULL OR by = :frame_id
  ORDER BY by IS NULL, id LIMIT :size FOR UPDATE SKIP LOCKED)
UPDATE source SET by = :frame_id FROM mine WHERE source.id = mine.id RETURNING source.*
"""


async def test_a_later_attempt_is_given_the_rows_the_first_one_stamped(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection
) -> None:
    here = world(database, tool, "claim", claim=CLAIM)
    policy = {"size": 10, "row_concurrency": 1}
    item = await here.frame(cursor={"kind": "claim"}, policy=policy)
    step = replace(here.step, tasks=(task("boom", "t"),))
    broken = replace(here, step=step, tools={**here.tools, "t": FakeTool(_bug)})
    await FrameRunner(broken.ports, broken.options()).run(item)
    assert (await here.last()).type == "frame.failed"
    again = replace(item, attempt=2, version=4)
    await here.say(again)
    await FrameRunner(here.ports, here.options()).run(again)
    committed = await here.last()
    assert committed.meta["rows"] == 10
    ids = await db.fetch("SELECT id FROM target ORDER BY id")
    assert [r["id"] for r in ids] == list(range(1, 11))


FENCED = """
WITH mine AS (
  SELECT id FROM source WHERE by IS NULL ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED)
UPDATE source SET by = 'me' FROM mine WHERE source.id = mine.id RETURNING source.id, source.name
"""


async def test_another_frame_continues_a_fenced_claim_with_the_rows_that_are_left(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection
) -> None:
    here = world(database, tool, "claim", claim=FENCED)
    assert here.step.loop is not None
    assert here.step.loop.cursor is not None
    cursor = replace(here.step.loop.cursor, is_fenced=True)
    loop = replace(here.step.loop, cursor=cursor)
    slow = task("slow", "t", {"n": "{{ item.id }}"})
    step = replace(here.step, loop=loop, tasks=(slow, *here.step.tasks))
    ticking = FakeTool(lambda config, call: (here.clock.advance(1.0), ok(1))[1])
    here = replace(here, step=step, tools={**here.tools, "t": ticking})
    policy = {"size": 10, "row_concurrency": 1, "duration_ms": 4000}
    given: dict[str, Any] = {"kind": "claim"}
    counts = []
    for number in range(100, 103):
        item = await here.frame(frame_id=number, cursor=given, policy=policy)
        await FrameRunner(here.ports, here.options()).run(item)
        committed = await here.last()
        assert committed.type == "frame.committed", committed.error
        counts.append((committed.meta["rows"], committed.meta["continues"]))
        given = dict(committed.context["cursor"])
    assert counts == [(4, True), (4, True), (2, False)]
    ids = await db.fetch("SELECT id FROM target ORDER BY id")
    assert [r["id"] for r in ids] == list(range(1, 11))
    assert await db.fetchval("SELECT count(*) FROM source WHERE by = 'me'") == 10


def _bug(config: Any, call: Any) -> Any:
    raise ZeroDivisionError


async def test_an_attempt_that_died_after_its_save_is_adopted_by_the_next(
    database: Settings, tool: PostgresTool, db: asyncpg.Connection
) -> None:
    await db.execute("DELETE FROM source WHERE id = 13")
    here = world(database, tool, "keyset", query="SELECT * FROM source", key="id")
    cursor = {"kind": "keyset", "type": "bigint", "after": None, "through": "10"}
    item = await here.frame(cursor=cursor, policy={"row_concurrency": 1})
    dying = replace(here, tools={"postgres": Dying(tool)})
    with pytest.raises(KeyboardInterrupt):
        await FrameRunner(dying.ports, dying.options()).run(item)
    again = await here.expire(item)
    await FrameRunner(here.ports, here.options(name="worker-2")).run(again)
    committed = await here.last()
    assert (committed.type, committed.meta["rows"]) == ("frame.committed", 10)
    assert committed.result == {"retries": 0, "saved": {"save": 10}}
    assert await db.fetchval("SELECT count(*) FROM target") == 10
