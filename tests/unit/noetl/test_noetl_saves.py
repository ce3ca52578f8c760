"""Which saves of NoETL's spelling a frame may defer."""

from __future__ import annotations

import pytest

from streams.playbook.parse import parse

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: tests/t}\n"
LOOP = """
workflow:
  - step: load
    loop: {in: "{{ workload.items }}", iterator: item}
    tool:
      - {name: get, kind: http, url: "http://h/{{ iter.item }}"}
      - {name: save, kind: postgres, auth: pg, command: "%s"}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
"""


def is_deferred(workflow: str) -> bool:
    return parse(HEAD + workflow).steps["load"].tasks[-1].deferrable


@pytest.mark.parametrize(
    "command",
    [
        "INSERT INTO t VALUES ({{ iter.item }})",
        "-- a comment\\nUPDATE t SET v = '{{ get.data | tojson }}'; DELETE FROM u",
        "WITH a AS (INSERT INTO t VALUES (1)) SELECT 1 AS ok;",
    ],
)
def test_a_last_save_that_nothing_reads_is_deferred(command: str) -> None:
    assert is_deferred(LOOP % command)


@pytest.mark.parametrize(
    "command",
    [
        "SELECT 1",
        "{{ ctx.command }}",
        "{% if x %}INSERT INTO t VALUES (1){% endif %}",
        "INSERT INTO t VALUES (1); VACUUM t",
        "BEGIN; INSERT INTO t VALUES (1); COMMIT",
        "DO $$ BEGIN INSERT INTO t VALUES (1); END $$",
    ],
)
def test_other_commands_run_where_they_stand(command: str) -> None:
    assert not is_deferred(LOOP % command)


INSERT = LOOP % "INSERT INTO t VALUES (1)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("command:", "fence: false, command:"),
        ("command:", "spec: {policy: {rules: [{else: {then: {do: continue}}}]}}, command:"),
        ("kind: http, url:", "kind: python, code:"),
        ("kind: noop", "kind: noop, input: {rows: '{{ load.results }}'}"),
        ("kind: noop", "kind: noop, input: {rows: '{{ load.results.save }}'}"),
        ('{name: save', '{name: more, kind: noop}\n      - {name: save'),
    ],
    ids=["own fence", "rules", "a task that may read", "rows are read", "task is read", "control"],
)  # fmt: skip
def test_a_save_that_could_be_noticed_is_not_deferred(before: str, after: str) -> None:
    assert before in INSERT
    workflow = INSERT.replace(before, after).replace('"http://h/{{ iter.item }}"', '"x = 1"')
    assert is_deferred(workflow) == ("kind: noop}\n      - {name: save" in workflow)


def test_only_the_last_task_is_deferred() -> None:
    """A row that fails later has the saves before, as without a batch."""
    first = "- {name: one, kind: postgres, auth: pg, command: INSERT INTO u VALUES (1)}"
    assert not is_deferred(INSERT.replace("- {name: get", f"{first}\n      - {{name: get"))
