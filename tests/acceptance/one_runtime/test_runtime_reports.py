"""What failed is named, what is large is not cut, and text stays text: a user reads it off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import yaml

from streams.app import open_log
from streams.dev.bench.playbook_setup import register
from streams.events.model import Root
from streams.execution.cancellation import cancelled
from streams.payload.port import Scope
from tests.support.projector.log_agreement import live_and_folded
from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

STRINGS = ["12345", "1e5", "None", "true", "", "007", " x ", '{"a": 1}', "{{ 1 + 1 }}"]
BAD = 13
REFUSES_ONE = f"""
def main(n):
    if n == {BAD}:
        raise ValueError(f"patient {{n}} has no chart")
    return n
"""


@pytest.fixture
async def table(runtime: Runtime) -> str:
    """An empty table of one column of text."""
    name = f"said_{uuid4().hex}"
    await runtime.author(f"CREATE TABLE {name} (said text)")
    return name


def insert(table: str, said: str) -> dict[str, Any]:
    command = f"INSERT INTO {table} (said) VALUES (:said)"
    return {"kind": "postgres", "auth": "pg_local", "command": command, "params": {"said": said}}


def one_bad_row(table: str, **more: str) -> dict[str, Any]:
    """Return a playbook whose step `visit` always fails for one of thirty rows."""
    check = {"kind": "python", "args": {"n": "{{ iter.n }}"}, "code": REFUSES_ONE}
    visit = {
        "step": "visit",
        "loop": {
            "in": "{{ range(30) | list }}",
            "iterator": "n",
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 10, "row_concurrency": 4},
        },
        "tool": [{"check": check}, {"save": insert(table, "row {{ iter.n }}")}],
        **more,
    }
    return playbook(visit)


async def said(runtime: Runtime, table: str) -> list[str]:
    return [row["said"] for row in await runtime.author(f"SELECT said FROM {table}")]


async def test_a_row_that_always_fails_ends_the_execution_and_is_named(
    runtime: Runtime, table: str
) -> None:
    ended = await runtime.run(one_bad_row(table))

    assert ended.status == "FAILED"
    assert ended.error is not None
    for what in ("visit", f"row {BAD}", "patient 13 has no chart"):
        assert what in ended.error
    assert f"row {BAD}" not in await said(runtime, table)
    live, folded = await live_and_folded(
        runtime.settings, ended.execution_id, await runtime.seq(ended.execution_id)
    )
    assert live == folded
    assert live["execution"][0]["error"] == ended.error


async def test_where_the_author_goes_on_after_errors_it_ends_partial_with_every_good_row(
    runtime: Runtime, table: str
) -> None:
    ended = await runtime.run(one_bad_row(table, on_error="continue"))

    assert ended.status == "PARTIAL"
    good = sorted(f"row {n}" for n in range(30) if n != BAD)
    assert sorted(await said(runtime, table)) == good
    commits = await runtime.events(ended.execution_id, "frame.committed")
    assert [one.meta["failed_rows"] for one in commits if one.meta["failed_rows"]] == [1]
    assert ended.error is not None
    for what in ("visit", f"row {BAD}", "patient 13 has no chart"):
        assert what in ended.error


async def test_a_list_of_1200_rows_is_not_cut_though_its_frames_are_closed_early(
    runtime: Runtime, table: str
) -> None:
    visit = {
        "step": "visit",
        "loop": {
            "in": "{{ range(1200) | list }}",
            "iterator": "n",
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 500, "duration_ms": 1, "row_concurrency": 4},
        },
        "tool": [{"save": insert(table, "row {{ iter.n }}")}],
    }

    ended = await runtime.run(playbook(visit))

    assert ended.status == "COMPLETED"
    assert sorted(await said(runtime, table)) == sorted(f"row {n}" for n in range(1200))
    commits = await runtime.events(ended.execution_id, "frame.committed")
    assert any(one.meta["continues"] for one in commits)
    assert sum(one.meta["rows"] for one in commits) == 1200


async def test_text_arrives_as_it_was_sent_through_frames(runtime: Runtime, table: str) -> None:
    give = {
        "kind": "python",
        "args": {"text": "{{ iter.text }}"},
        "code": "def main(text):\n    return {'text': text}",
    }
    visit = {
        "step": "visit",
        "loop": {"in": "{{ workload.texts }}", "iterator": "text"},
        "tool": [{"give": give}, {"save": insert(table, "{{ give.data.text }}")}],
    }

    ended = await runtime.run(playbook(visit), texts=STRINGS)

    assert (ended.status, ended.error) == ("COMPLETED", None)
    assert sorted(await said(runtime, table)) == sorted(STRINGS)


async def test_text_arrives_as_it_was_sent_through_commands(runtime: Runtime, table: str) -> None:
    give = {
        "kind": "python",
        "args": {"texts": "{{ workload.texts }}"},
        "code": "def main(texts):\n    return texts",
    }
    save = insert(table, "")
    del save["params"]
    save |= {"rows": "{{ give.data }}", "command": f"INSERT INTO {table} (said) VALUES (:text)"}

    ended = await runtime.run(
        playbook(
            {"step": "give", "tool": give, "next": "save"},
            {"step": "save", "tool": save, "next": "one"},
            {"step": "one", "tool": insert(table, "{{ workload.texts[0].text }}")},
        ),
        texts=[{"text": text} for text in STRINGS],
    )

    assert (ended.status, ended.error) == ("COMPLETED", None)
    assert sorted(await said(runtime, table)) == sorted([*STRINGS, STRINGS[0]])


# ---------------------------------------------------------------- playbooks that call playbooks


def calling(row: str, rows: str, **more: Any) -> dict[str, Any]:
    """Return a step's loop over small frames, a few rows at once."""
    return {
        "loop": {
            "in": rows,
            "iterator": row,
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 5, "parallelism": 2, "row_concurrency": 3},
        },
        **more,
    }


def doubling() -> dict[str, Any]:
    """Return a playbook that gives back twice the number it was given."""
    double = {
        "kind": "python",
        "args": {"n": "{{ workload.n }}"},
        "code": "def main(n):\n    return {'status': 'success', 'data': {'twice': 2 * n}}",
    }
    made = playbook({"step": "double", "tool": double})
    return {**made, "return": {"n": "{{ workload.n }}", "twice": "{{ double.data.twice }}"}}


async def children_of(runtime: Runtime, parent: int) -> list[int]:
    found = await runtime.executions.connection.fetch(
        "SELECT root_id FROM noetl.event WHERE seq = 1 AND parent_execution_id = $1", parent
    )
    return [row["root_id"] for row in found]


async def test_thirty_rows_call_thirty_children_and_get_what_they_return(
    runtime: Runtime, table: str
) -> None:
    child = doubling()
    await register(runtime.settings, yaml.safe_dump(child))
    path = child["metadata"]["path"]
    call = {"kind": "playbook", "path": path, "workload": {"n": "{{ iter.n }}"}}
    visit = calling("n", "{{ range(30) | list }}")
    save = insert(table, "{{ call.n }} {{ call.twice }}")

    ended = await runtime.run(
        playbook({"step": "visit", **visit, "tool": [{"call": call}, {"save": save}]})
    )

    assert (ended.status, ended.error) == ("COMPLETED", None)
    assert sorted(await said(runtime, table)) == sorted(f"{n} {2 * n}" for n in range(30))
    assert len(await children_of(runtime, ended.execution_id)) == 30


async def test_children_call_children(runtime: Runtime, table: str) -> None:
    inner = doubling()
    path = inner["metadata"]["path"]
    call = {"kind": "playbook", "path": path, "workload": {"n": "{{ iter.n }}"}}
    each = calling("n", "{{ workload.numbers }}")
    save = insert(table, "{{ call.twice }}")
    middle = playbook({"step": "each", **each, "tool": [{"call": call}, {"save": save}]})
    for one in (inner, middle):
        await register(runtime.settings, yaml.safe_dump(one))
    lists = [[1, 2, 3], [4, 5], [6]]
    outer = calling("numbers", "{{ workload.lists }}")
    given = {"numbers": "{{ iter.numbers }}"}
    tool = {"kind": "playbook", "path": middle["metadata"]["path"], "workload": given}

    ended = await runtime.run(playbook({"step": "outer", **outer, "tool": tool}), lists=lists)

    assert (ended.status, ended.error) == ("COMPLETED", None)
    assert sorted(map(int, await said(runtime, table))) == [2, 4, 6, 8, 10, 12]
    middles = await children_of(runtime, ended.execution_id)
    inners = [await children_of(runtime, one) for one in middles]
    assert sorted(map(len, inners)) == [1, 2, 3]


async def test_cancelling_ends_the_children_that_are_waited_for(runtime: Runtime) -> None:
    sleep = "import time\n\ndef main():\n    time.sleep(600)"
    child = playbook({"step": "sleep", "tool": {"kind": "python", "code": sleep}})
    await register(runtime.settings, yaml.safe_dump(child))
    path = child["metadata"]["path"]
    visit = calling("n", "{{ [1, 2] }}", tool={"kind": "playbook", "path": path})
    parent = await runtime.start(playbook({"step": "visit", **visit}))
    count = "SELECT count(*) = 2 FROM noetl.event WHERE seq = 1 AND parent_execution_id = $1"
    await runtime.until(count, parent)
    scope = Scope(runtime.settings.runtime.tenant_id, runtime.settings.runtime.organization_id)
    end = cancelled(
        Root("execution", parent),
        scope,
        by="test",
        reason=None,
        now=datetime.now(UTC),
        key=uuid4().hex,
        cause_id=None,
    )
    async with open_log(runtime.settings, role="test", lanes=1) as log:
        await log.store.append([end])

    for one in await children_of(runtime, parent):
        assert (await runtime.finish(one)).status == "CANCELLED"
