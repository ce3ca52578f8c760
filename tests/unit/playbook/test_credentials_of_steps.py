"""Which credentials a step names: its tasks', its cursor's, its sinks', by alias and by default."""

from __future__ import annotations

import pytest

from streams.playbook.credentials import may_use_credential
from streams.playbook.model import Playbook
from streams.playbook.parse import check, parse
from streams.playbook.problem import Severity

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: p}\n"
SELECT = "{kind: postgres, command: SELECT 1"


def named(playbook: Playbook, *names: str) -> dict[str, set[str]]:
    found = {
        step: {one for one in names if may_use_credential(playbook, step, one)}
        for step in playbook.steps
    }
    return {step: those for step, those in found.items() if those}


@pytest.mark.parametrize("key", ["auth", "credential", "credentialRef"])
def test_a_task_names_its_credential_by_any_of_its_words(key: str):
    made = parse(f"{HEAD}workflow: [{{step: start, tool: {SELECT}, {key}: pg}}}}]")
    assert named(made, "pg", "other") == {"start": {"pg"}}
    config = made.steps["start"].tasks[0].config.render({})
    assert isinstance(config, dict)
    assert config["auth"] == "pg"
    assert key == "auth" or key not in config


def test_a_credential_given_twice_is_an_error():
    text = f"{HEAD}workflow: [{{step: start, tool: {SELECT}, auth: a, credentialRef: b}}}}]"
    made, problems = check(text)
    assert made is None
    assert ["given twice" in one.message for one in problems] == [True]


def test_an_alias_stands_for_the_stored_name():
    head = f"{HEAD}credentials: [{{name: pg_main, as: pg}}]\n"
    made = parse(f"{head}workflow: [{{step: start, tool: {SELECT}, auth: pg}}}}]")
    assert named(made, "pg_main", "pg") == {"start": {"pg_main"}}


def test_a_database_task_without_one_uses_the_playbooks_only_one():
    head = f"{HEAD}credentials: [pg_main]\n"
    made = parse(f"{head}workflow: [{{step: start, tool: {SELECT}}}}}]")
    assert named(made, "pg_main") == {"start": {"pg_main"}}
    two = parse(f"{HEAD}credentials: [a, b]\nworkflow: [{{step: start, tool: {SELECT}}}}}]")
    assert named(two, "a", "b") == {}
    other = parse(f"{head}workflow: [{{step: start, tool: {{kind: http, url: u}}}}]")
    assert named(other, "pg_main") == {}  # a login is sent nowhere that did not ask for it


def test_a_cursor_and_a_sink_name_theirs():
    made = parse(f"""{HEAD}
workflow:
  - step: rows
    loop: {{cursor: {{kind: postgres, credential: source, query: SELECT 1 AS k, key: k}}}}
    tool: {{kind: noop}}
    next: save
  - step: save
    tool: {{kind: noop}}
    sink: {{tool: postgres, auth: target, table: t, data: {{a: 1}}}}
    next: note
  - step: note
    tool: {{kind: noop}}
    sink: {{storage: kv, auth: redis_main, spec: {{driver: redis}}, data: {{key: k, value: v}}}}
""")
    found = named(made, "source", "target", "redis_main", "other")
    assert found["rows"] == {"source"}
    assert [names for step, names in found.items() if step != "rows"] == [
        {"target"},
        {"redis_main"},
    ]


def test_a_template_can_mean_only_what_is_declared():
    head = f"{HEAD}credentials: [a, {{name: b, as: c}}]\n"
    made = parse(
        f"{head}workflow: [{{step: start, tool: {SELECT}, auth: '{{{{ workload.x }}}}'}}}}]"
    )
    assert named(made, "a", "b", "c", "d") == {"start": {"a", "b"}}


def test_a_name_beside_the_declared_ones_is_noted():
    head = f"{HEAD}credentials: [pg_main]\n"
    made, problems = check(f"{head}workflow: [{{step: start, tool: {SELECT}, auth: pg_mian}}}}]")
    assert made is not None
    (note,) = problems
    assert note.severity is Severity.NOTE
    assert "pg_main" in (note.hint or "")
    _, none = check(f"{HEAD}workflow: [{{step: start, tool: {SELECT}, auth: anything}}}}]")
    assert none == ()
