"""Which spelling a document is read in, and what its templates then mean."""

from __future__ import annotations

from typing import Any

import pytest

from streams.playbook.expressions import compile_value
from streams.playbook.noetl.templates import is_true
from streams.playbook.parse import check, describe_spelling, parse
from streams.playbook.problem import Severity
from streams.playbook.spelling import Spelling
from streams.playbook.template_compiler import NameRules

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: tests/t}\n"
LENIENT = NameRules(lenient=True, values=frozenset({"load"}))


def render(text: str, **scope: Any) -> Any:
    return compile_value(text, LENIENT).render(scope)


@pytest.mark.parametrize(
    ("workflow", "because"),
    [
        ("- {step: a, tool: [{name: x, kind: noop}]}", "a task as {name, kind}"),
        ("- {step: a, tool: {kind: noop}, set: {ctx.n: 1}}", "a scoped `set`"),
        ("- {step: a, tool: {kind: python, code: 'result = 1'}}", "code without `main`"),
        ("- {step: a, tool: {kind: noop, spec: {policy: {rules: []}}}}", "`policy`"),
        ("- {step: a, tool: {kind: noop}, next: {spec: {mode: exclusive}, arcs: []}}", "`spec`"),
    ],
)
def test_constructs_of_noetl_decide_the_spelling(workflow: str, because: str) -> None:
    text = f"{HEAD}workflow:\n  {workflow}\n"
    assert parse(text).spelling is Spelling.NOETL
    assert because in describe_spelling(text)


def test_a_bare_workload_key_in_a_template_is_noetls() -> None:
    tool = "{kind: noop, data: '{{ n }}'}"
    text = f"{HEAD}workload: {{n: 1}}\nworkflow:\n  - {{step: a, tool: {tool}}}\n"
    assert parse(text).spelling is Spelling.NOETL


def test_a_construct_of_the_specs_wins_so_that_registered_playbooks_stay() -> None:
    text = (
        f"{HEAD}workflow:\n"
        "  - {step: a, tool: {kind: python, input: {}, code: 'def main(): return 1'}, next: b}\n"
        "  - {step: b}\n"
    )
    assert parse(text).spelling is Spelling.SPEC
    assert describe_spelling(text).endswith("line 5 has `next` without `arcs`")


def test_metadata_can_decide() -> None:
    text = f"{HEAD}workflow:\n  - {{step: a, tool: {{kind: noop}}}}\n"
    chosen = text.replace("name: t,", "name: t, spelling: noetl,")
    assert (parse(text).spelling, parse(chosen).spelling) == (Spelling.SPEC, Spelling.NOETL)


def test_a_spelling_that_does_not_exist_is_an_error() -> None:
    text = HEAD.replace("tests/t}", "tests/t, spelling: netl}") + "workflow: [{step: a}]\n"
    made, found = check(text)
    assert made is None
    assert [one.where for one in found] == ["metadata.spelling"]


def test_noetls_documents_are_yaml_1_1() -> None:
    load = "{on_off: yes, octal: 010, when: 2026-01-01}"
    step = "{step: a, tool: {kind: python, code: 'result = 1'}}"
    text = f"{HEAD}workload: {load}\nworkflow:\n  - {step}\n"
    assert parse(text).workload == {"on_off": True, "octal": 8, "when": "2026-01-01"}


def test_a_key_that_nothing_reads_is_named() -> None:
    step = "{step: a, tool: [{name: x, kind: noop, retry: 3}], colour: red}"
    text = f"{HEAD}workflow:\n  - {step}\n"
    made, problems = check(text)
    assert made is not None
    named = {problem.where for problem in problems if problem.severity is Severity.WARNING}
    assert {"workflow[0].tool[0].retry", "workflow[0].colour"} <= named


def test_a_tools_key_beside_the_tool_is_an_error() -> None:
    step = "{step: a, tool: [{name: x, kind: postgres}], command: SELECT 1}"
    text = f"{HEAD}workflow:\n  - {step}\n"
    made, problems = check(text)
    assert made is None
    assert any("belongs under `tool`" in str(problem) for problem in problems)


def test_an_undefined_name_is_empty() -> None:
    assert render("{{ nothing }}") is None
    assert render("a{{ nothing.at.all }}b") == "ab"
    assert render("{{ nothing | int }}") == 0
    assert render("{{ nothing.x | default(3) }}") == 3
    assert render("{{ nothing.rows[0].n == 1 }}") is False
    assert render("{{ nothing | length }}") == 0
    assert render("{{ nothing | tojson }}") == "null"
    assert render("{% for x in nothing %}{{ x }}{% endfor %}.") == "."


def test_a_null_of_the_data_is_not_an_undefined_name() -> None:
    assert render("a{{ x }}b", x=None) == "aNoneb"


def test_data_of_a_plain_value_is_the_value_unless_it_has_such_a_key() -> None:
    assert render("{{ load.data.n }}", load={"n": 1}) == 1
    assert render("{{ load.data.n }}", load={"n": 1, "data": {"n": 2}}) == 2
    assert render("{{ load.result }}", load=[1, 2]) == [1, 2]
    assert render("{{ load['data'] | length }}", load="abc") == 3
    assert render("{{ other.data is defined }}", other={"n": 1}) is False


@pytest.mark.parametrize("word", ["", "False", "0", "no", "none", "null", "off", " ", "[]"])
def test_words_of_falsehood_are_false(word: str) -> None:
    assert not is_true(word)


def test_other_words_and_values_are_true_as_usual() -> None:
    assert is_true("yes")
    assert is_true({"a": 1})
    assert not is_true({})
