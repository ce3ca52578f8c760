"""Every problem of a playbook at once, each at its line and with a hint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from streams.cli.playbook import check as check_command
from streams.playbook.errors import BadPlaybook
from streams.playbook.parse import check, parse
from streams.playbook.problem import Problem, Severity

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: n, path: p/q}\n"
WRONG = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: x, path: a/b}
worklaod: {a: 1}
workflow:
  - step: start
    tool: {kind: htpp, url: "{{ workload.a }"}
    nxt: load
    next:
      - step: lod
        when: "a > 1"
  - step: load
    loop: {iterator: x, spec: {mode: cursor}}
    tool:
      - a: {kind: noop, eval: [{expr: "{{ iter.x }}", do: jmp}]}
      - b: {kind: noop, eval: [{else: {do: jump, to: c}}]}
    sink: {tool: postgres}
  - step: alone
"""


def problems(body: str) -> list[Problem]:
    return list(check(HEAD + body)[1])


def found(body: str, text: str) -> Problem:
    """Return the problem that says `text`; there must be one."""
    matching = [one for one in problems(body) if text in str(one)]
    assert matching, f"nothing says {text!r} in:\n" + "\n".join(map(str, problems(body)))
    return matching[0]


def test_everything_wrong_is_said_at_once_with_line_column_and_hint() -> None:
    made, said = check(WRONG)
    assert made is None
    lines = {f"{one.line}:{one.column} {one.message} | {one.hint}" for one in said}
    for expected in (
        "4:1 unknown key 'worklaod' | did you mean 'workload'?",
        "7:18 there is no tool 'htpp' | did you mean 'http'?",
        "7:29 is not a valid template: unexpected '}' | None",
        "8:5 unknown key 'nxt' | did you mean 'next'?",
        "10:15 there is no step 'lod' | did you mean 'load'?",
        "15:59 there is no 'jmp' | did you mean 'jump'?",
        "16:54 there is no task 'c' in this step | there are a, b",
        "17:5 a postgres sink needs a table | add `table`; the table must exist already",
    ):
        assert expected in lines
    assert any("11:15 is a text, which is always true" in line for line in lines)
    assert any("13:5 has neither `in` nor `cursor`" in line for line in lines)
    assert any("18:11 step 'alone' is never reached" in line for line in lines)
    assert not any("'load' is never reached" in line for line in lines)
    assert [one.line for one in said] == sorted(one.line for one in said)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("workflow: []\n", "has no steps"),
        ("workflow:\n  - step: a\n  - step: a\n", "step 'a' is defined twice"),
        ("workflow:\n  - {tool: {kind: noop}}\n", "'step' is missing in this step"),
        ("workflow:\n  - step: workload\n", "means something else in templates"),
        ("workflow:\n  - step: range\n", "means something else in templates"),
        ("workflow:\n  - step: load-data\n", "is not a valid step name"),
        ("workflow:\n  - {step: a, next: end}\n", "leave `next` out where the playbook ends"),
        ("workflow:\n  - {step: a, on_error: ignore}\n", "there is no 'ignore'"),
        ("workflow:\n  - {step: a, tool: {url: x}}\n", "has no kind"),
        ("workflow:\n  - {step: a, tool: []}\n", "has no tasks"),
        ("workflow:\n  - {step: a, tool: [{b: {kind: noop}, c: {kind: noop}}]}\n", "not one label"),
        (
            "workflow:\n  - {step: a, tool: [{b: {kind: noop}}, {b: {kind: noop}}]}\n",
            "'b' is used twice",
        ),
        ("workflow:\n  - {step: a, tool: {kind: workbook, name: x}}\n", "no action 'x'"),
        ("workflow:\n  - {step: a, tool: {kind: python, code: 'def ('}}\n", "is not valid Python"),
        ("workflow:\n  - {step: a, when: 'x > 1'}\n", "is a text, which is always true"),
        ("workflow:\n  - {step: a, when: '{{ ctx.x }} > 1'}\n", "is a text, which is always true"),
        ("workflow:\n  - {step: a, set: x}\n", "is a text, not a mapping"),
        ("workflow:\n  - {step: a, loop: {in: [1]}}\n", "a loop without a tool does nothing"),
        ("workflow: 5\n", "should be a list, not 5"),
        ("workflow:\n  - step: a\nretrun: 1\n", "did you mean 'return'?"),
    ],
)
def test_mistakes_of_steps(body: str, message: str) -> None:
    assert found(body, message).severity is Severity.ERROR


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("{iterator: x}", "has neither `in` nor `cursor`"),
        ("{in: [1], cursor: {kind: kafka, topic: t}}", "has both `in` and `cursor`"),
        ("{in: 'rows'}", "is a text, not a list"),
        ("{in: [1], spec: {mode: cursor}}", "mode cursor contradicts"),
        ("{cursor: {kind: kafka, topic: t}, spec: {mode: fanout}}", "mode fanout contradicts"),
        ("{in: [1], spec: {mode: parralel}}", "did you mean 'parallel'?"),
        ("{in: [1], spec: {max_in_flight: 0}}", "should be a whole number from 1, not 0"),
        ("{in: [1], frame_policy: {sise: 5}}", "did you mean 'size'?"),
        ("{cursor: {kind: postgres, auth: a, query: q}}", "`query` needs `key`"),
        ("{cursor: {kind: postgres, auth: a}}", "either `query` or `claim`"),
        ("{cursor: {kind: postgres, query: q, key: k}}", "needs `auth` or `dsn`"),
        ("{cursor: {kind: kafka}}", "needs `topic`"),
        ("{cursor: {kind: redis}}", "there is no 'redis'"),
    ],
)
def test_mistakes_of_loops(loop: str, message: str) -> None:
    body = f"workflow:\n  - step: a\n    tool: {{kind: noop}}\n    loop: {loop}\n"
    assert found(body, message).severity is Severity.ERROR


def test_two_modes_that_differ_are_refused() -> None:
    found(
        "workflow:\n  - step: a\n    tool: {kind: noop}\n    spec: {loop_mode: fanout}\n"
        "    loop: {in: [1], spec: {mode: parallel}}\n",
        "differs from spec.loop_mode",
    )


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("[{do: break}]", "either `expr` or `else`"),
        ("[{expr: '{{ outcome }}', else: {do: break}}]", "either `expr` or `else`"),
        ("[{else: {do: jump}}]", "jumps nowhere"),
        ("[{else: {do: jump, to: tusk}}]", "did you mean 'task'?"),
        ("[{else: {do: explode}}]", "there is no 'explode'"),
        ("[{expr: 'outcome.ok', do: break}]", "is a text, which is always true"),
        ("[{expr: '{{ outcome.ok }}'}]", "has no action"),
        ("[{else: {do: break}}, {expr: '{{ outcome }}', do: fail}]", "comes after `else`"),
        ("[{else: {do: retry, attempts: none}}]", "should be a whole number from 1, not 'none'"),
        ("[{else: {do: jump, to: task}}]", "task 'task' jumps for ever"),
        ("[{expr: '{{ ctx.x }}', do: retry}, {else: {do: jump, to: task}}]", "jumps for ever"),
    ],
)
def test_mistakes_of_rules(rules: str, message: str) -> None:
    body = f"workflow:\n  - step: a\n    tool: [{{task: {{kind: noop, eval: {rules}}}}}]\n"
    assert found(body, message).severity is Severity.ERROR


@pytest.mark.parametrize(
    "rules",
    [
        "[{expr: '{{ ctx.x }}', do: jump, to: task}]",
        "[{expr: '{{ ctx.x }}', do: break}, {else: {do: jump, to: task}}]",
        "[{expr: '{{ ctx.x }}', do: fail}, {else: {do: jump, to: task}}]",
    ],
)
def test_a_jump_with_a_way_out_is_fine(rules: str) -> None:
    body = f"workflow:\n  - step: a\n    tool: [{{task: {{kind: noop, eval: {rules}}}}}]\n"
    assert problems(body) == []


def test_two_tasks_that_jump_to_each_other_for_ever_are_found() -> None:
    body = """\
workflow:
  - step: a
    tool:
      - one: {kind: noop, eval: [{else: {do: continue}}]}
      - two: {kind: noop, eval: [{else: {do: jump, to: one}}]}
      - three: {kind: noop}
"""
    assert found(body, "task 'two' jumps for ever").line == 8


def test_steps_that_follow_each_other_for_ever_are_found() -> None:
    cycle = "workflow:\n  - {step: a, next: b}\n  - {step: b, next: [{step: c}]}\n"
    cycle += "  - {step: c, next: %s}\n"
    assert found(cycle % "b", "b → c → b follow each other for ever").line == 6
    assert problems(cycle % "[{step: b, when: '{{ ctx.more }}'}]") == []


def test_arcs_after_one_that_always_holds_are_pointed_out() -> None:
    body = "workflow:\n  - {step: a, next: [b, c]}\n  - {step: b, next: c}\n  - step: c\n"
    assert found(body, "always holds, so these are never taken: c").severity is Severity.WARNING


def test_likely_mistakes_are_warnings_and_can_be_registered() -> None:
    body = "workflow:\n  - {step: a, tool: {kind: http, ulr: x, headers: {a: '{{ worklod.x }}'}}}\n"
    made, said = check(HEAD + body)
    assert made is not None
    assert {one.severity for one in said} == {Severity.WARNING}
    assert [one.hint for one in said] == ["did you mean 'url'?", "did you mean 'workload'?"]


def test_arguments_rows_labels_and_steps_are_names_that_are_known() -> None:
    body = """\
workflow:
  - {step: a, next: [{step: b, args: {message: hello}}]}
  - step: b
    loop: {in: [1], iterator: row}
    tool:
      - one: {kind: noop, data: ["{{ message }}{{ args.message }}", "{{ row }}", "{{ a.data }}"]}
      - two: {kind: noop, data: ["{{ one.data }}", "{{ _prev }}", "{{ _loop.current_item }}"]}
"""
    assert problems(body) == []


def test_a_result_without_the_envelope_is_a_note() -> None:
    body = "workflow:\n  - {step: a, tool: {kind: python, code: 'def main(): return 5'}}\n"
    made, said = check(HEAD + body)
    assert made is not None
    assert [(one.severity, "wrapped" in one.message) for one in said] == [(Severity.NOTE, True)]


@pytest.mark.parametrize(
    "text", ["", "just text", "- a\n- b\n", "a: [", "\x00", "workflow: {a: 1}"]
)
def test_what_is_no_playbook_at_all_is_said_and_nothing_falls_over(text: str) -> None:
    made, said = check(text)
    assert made is None
    assert said


def test_the_error_names_all_problems() -> None:
    with pytest.raises(BadPlaybook, match=r"wrong\.yaml: \d+ errors") as caught:
        parse(WRONG, "wrong.yaml")
    assert "did you mean 'workload'?" in str(caught.value)
    assert len(caught.value.problems) > 8


def test_the_command_exits_with_its_code_and_prints_json(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(HEAD + "workflow: [{step: a}]\n")
    bad.write_text(WRONG)
    assert CliRunner().invoke(check_command, [str(good)]).exit_code == 0
    answer = CliRunner().invoke(check_command, [str(good), str(bad), "--json"])
    assert getattr(answer.exception, "exit_code", 0) == 3
    assert '"message":"unknown key \'worklaod\'"' in answer.stdout
    assert "did you mean" in CliRunner().invoke(check_command, [str(bad)]).output


ODD: tuple[Any, ...] = (5, [5], {"a": 5})
ALL_KEYS: dict[str, Any] = {
    "apiVersion": "noetl.io/v2",
    "kind": "Playbook",
    "metadata": {"name": "t", "path": "a/b", "labels": {"a": "b"}},
    "workload": {"items": [1]},
    "credentials": [{"name": "pg_main", "as": "pg"}],
    "workbook": [{"name": "act", "tool": {"kind": "noop"}}],
    "sink": {"storage": "postgres", "auth": "pg", "table": "t", "mode": "upsert", "key": ["id"]},
    "return": "{{ a.data }}",
    "workflow": [
        {
            "step": "a",
            "loop": {"in": "{{ workload.items }}", "iterator": "it"},
            "tool": [
                {
                    "x": {
                        "kind": "noop",
                        "spec": {"result": {"store": {"kind": "kv"}, "select": [{"path": "$.a"}]}},
                        "eval": [
                            {"expr": "{{ true }}", "do": "jump", "to": "x"},
                            {"else": {"do": "continue", "set_iter": {"a": 1}}},
                        ],
                    }
                }
            ],
            "sink": {
                "storage": "s3",
                "spec": {"bucket": "b", "key": "k"},
                "eval": [{"else": {"do": "fail"}}],
            },
            "next": [{"step": "b", "when": "{{ a.total }}"}],
        },
        {
            "step": "b",
            "sink": {
                "storage": "postgres",
                "auth": "pg",
                "statement": "SELECT :a",
                "params": {"a": 1},
            },
        },
    ],
}


def mutants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield `value` with one thing in it replaced, for every thing and every odd value."""
    for odd in ODD:
        yield f"={odd!r}", odd
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            for where, changed in mutants(value[key]):
                whole = value.copy()
                whole[key] = changed
                yield f".{key}{where}", whole


@pytest.mark.parametrize("key", ["credentials", "workbook", "sink", "workflow"])
def test_whatever_stands_anywhere_is_a_problem_and_no_crash(key: str) -> None:
    for where, changed in mutants(ALL_KEYS[key]):
        try:
            check(yaml.safe_dump({**ALL_KEYS, key: changed}, sort_keys=False), clients=False)
        except Exception as error:  # noqa: BLE001 - whichever it is, its cause must be named
            pytest.fail(f"{key}{where}: {error!r}")
