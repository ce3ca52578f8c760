"""What failed is named, what is large is not cut, and text stays text: a user reads it off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from tests.agreement import live_and_folded
from tests.runtime import Runtime, playbook, whole_runtime

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

STRINGS = ["12345", "1e5", "None", "true", "", "007", " x ", '{"a": 1}', "{{ 1 + 1 }}"]
BAD = 13
REFUSES_ONE = f"""
def main(n):
    if n == {BAD}:
        raise ValueError(f"patient {{n}} has no chart")
    return n
"""


@pytest.fixture(scope="module")
async def runtime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Runtime]:
    with pytest.MonkeyPatch.context() as patch:
        async with whole_runtime(tmp_path_factory.mktemp("truth"), patch) as made:
            yield made


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
