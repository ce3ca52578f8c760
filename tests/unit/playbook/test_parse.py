"""From text to playbook: both versions of the language, and what a planner and worker get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.playbook.model import Do, FramePolicy, Mode, Playbook, Step, Task
from streams.playbook.parse import check, parse

REPOSITORY = Path(__file__).resolve().parents[3]
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: n, path: p/q}\n"


def playbook(body: str) -> Playbook:
    return parse(HEAD + body)


def step(body: str) -> Step:
    """Return the only step, whose keys are in `body`, indented by four."""
    made = playbook(f"workflow:\n  - step: only\n{body}")
    return made.steps["only"]


def rendered(task: Task, **scope: Any) -> Any:
    return task.config.render(scope)


def test_the_smallest_playbook() -> None:
    made = playbook("workflow:\n  - step: begin\n")
    assert (made.name, made.path, made.first, made.pool) == ("n", "p/q", "begin", "default")
    assert made.steps["begin"].tasks == ()


def test_a_step_called_start_is_the_first_wherever_it_stands() -> None:
    made = playbook("workflow:\n  - step: other\n  - step: start\n    next: other\n")
    assert made.first == "start"


def test_one_tool_is_a_task_with_the_name_of_its_step() -> None:
    (task,) = step("    tool: {kind: http, url: '{{ workload.url }}/x', params: {n: 1}}\n").tasks
    assert (task.label, task.kind, task.line) == ("only", "http", 6)
    config = rendered(task, workload={"url": "http://h"})
    assert config == {"url": "http://h/x", "params": {"n": 1}}


def test_a_pipeline_with_its_rules() -> None:
    made = step("""\
    tool:
      - fetch:
          kind: http
          url: http://h
          spec: {timeout_s: 5}
          eval:
            - expr: "{{ outcome.status == 'error' }}"
              do: retry
              attempts: 5
              backoff: exponential
              delay: 0.5
            - else:
                do: continue
                set_iter: {more: "{{ outcome.result.more }}"}
                set_ctx: {seen: true}
      - again:
          kind: noop
          eval:
            - {expr: "{{ iter.more }}", do: jump, to: fetch}
            - {else: {do: break}}
""")
    fetch, again = made.tasks
    first, other = fetch.rules
    assert (first.do, first.attempts, first.backoff) == (Do.RETRY, 5, "exponential")
    assert first.delay_s == 0.5
    assert other.when is None
    assert other.set_iter is not None
    assert other.set_iter.render({"outcome": {"result": {"more": 1}}}) == {"more": 1}
    assert other.set_ctx is not None
    assert other.set_ctx.render({}) == {"seen": True}
    assert fetch.spec == {"timeout_s": 5}
    assert rendered(fetch) == {"url": "http://h"}
    assert [(rule.do, rule.to) for rule in again.rules] == [(Do.JUMP, "fetch"), (Do.BREAK, None)]


def test_a_step_reads_what_its_worker_renders() -> None:
    made = step("""\
    when: "{{ ctx.go }}"
    loop:
      cursor: {kind: postgres, auth: pg, query: "SELECT {{ args.columns }}", key: id}
    tool:
      - a: {kind: noop, data: "{{ workload.x }}", eval: [{else: {do: break}}]}
      - b: {kind: noop, eval: [{expr: "{{ outcome.data }}", do: break}]}
    set: {y: "{{ only.data }}"}
""")
    assert made.reads == {"args", "workload", "outcome"}
    assert made.when is not None
    assert made.sets is not None


def test_loops_over_lists() -> None:
    loop = step("""\
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: {mode: parallel, max_in_flight: 3}
      frame_policy: {size: 7, row_concurrency: 2}
    tool: {kind: noop}
""").loop
    assert loop is not None
    assert (loop.iterator, loop.mode, loop.max_in_flight) == ("row", Mode.PARALLEL, 3)
    assert loop.policy == FramePolicy(size=7, row_concurrency=2)
    assert loop.source is not None
    assert loop.source.render({"workload": {"rows": [1]}}) == [1]


def test_the_usual_loop() -> None:
    loop = step("    loop: {in: [1, 2]}\n    tool: {kind: noop}\n").loop
    assert loop is not None
    assert (loop.iterator, loop.mode, loop.policy) == ("item", Mode.SEQUENTIAL, FramePolicy())


def test_a_frame_policy_of_null_is_the_way_back_to_single_rows() -> None:
    loop = step("    loop: {in: [1], frame_policy: null}\n    tool: {kind: noop}\n").loop
    assert loop is not None
    assert loop.policy is None


def test_the_mode_may_also_stand_in_the_spec_of_the_step() -> None:
    made = step("    spec: {loop_mode: fanout}\n    loop: {in: [1]}\n    tool: {kind: noop}\n")
    assert made.loop is not None
    assert made.loop.mode is Mode.FANOUT


@pytest.mark.parametrize(
    ("cursor", "form"),
    [
        ("{kind: postgres, auth: pg, query: SELECT 1, key: id}", "keyset"),
        ("{kind: postgres, dsn: x, claim: UPDATE t}", "claim"),
        ("{kind: kafka, topic: t}", "offsets"),
    ],
)
def test_cursors_have_a_form(cursor: str, form: str) -> None:
    loop = step(f"    loop: {{cursor: {cursor}}}\n    tool: {{kind: noop}}\n").loop
    assert loop is not None
    assert loop.mode is Mode.CURSOR
    assert loop.cursor is not None
    assert loop.cursor.form == form
    config = loop.cursor.config.render({})
    assert isinstance(config, dict)
    assert "kind" not in config


@pytest.mark.parametrize(
    ("following", "arcs", "inclusive"),
    [
        ("b", [("b", None)], False),
        ("[b, c]", [("b", None), ("c", None)], False),
        ("[{step: b, when: '{{ ctx.x }}'}, {step: c}]", [("b", True), ("c", None)], False),
        (
            "{spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}",
            [("b", None), ("c", None)],
            True,
        ),
    ],
)
def test_ways_out(following: str, arcs: list[tuple[str, Any]], inclusive: bool) -> None:
    made = playbook(
        f"workflow:\n  - {{step: a, next: {following}}}\n  - step: b\n    next: c\n  - step: c\n"
    )
    found = [
        (arc.step, arc.when and arc.when.render({"ctx": {"x": True}}))
        for arc in made.steps["a"].arcs
    ]
    assert (found, made.steps["a"].inclusive) == (arcs, inclusive)


def test_arguments_go_along_an_arc() -> None:
    made = playbook(
        "workflow:\n  - {step: a, next: [{step: b, args: {n: '{{ ctx.n }}'}}]}\n  - step: b\n"
    )
    (arc,) = made.steps["a"].arcs
    assert arc.args is not None
    assert arc.args.render({"ctx": {"n": 1}}) == {"n": 1}


def test_the_rest_of_the_document() -> None:
    made = playbook("""\
workload: {url: "http://h", n: 1}
credentials: [{name: pg_main, as: pg}, other]
return: {status: success, data: "{{ a.data }}"}
workflow:
  - step: a
    pool: large
    on_error: continue
    tool: {kind: noop}
""")
    assert made.workload == {"url": "http://h", "n": 1}
    assert made.credentials == {"pg": "pg_main", "other": "other"}
    assert (made.steps["a"].pool, made.steps["a"].on_error) == ("large", "continue")
    assert made.returns is not None
    assert made.returns.render({"a": {"data": 5}}) == {"status": "success", "data": 5}


def test_an_action_of_a_tool_is_not_one_of_the_workbook() -> None:
    (task,) = step("    tool: {kind: artifact, action: get, ref: '{{ ctx.ref }}'}\n").tasks
    assert rendered(task, ctx={"ref": 1}) == {"action": "get", "ref": 1}


def test_a_call_of_another_playbook_is_known_as_one() -> None:
    assert step("    tool: {kind: playbook, path: x/y}\n").is_playbook


@pytest.mark.parametrize(
    "workbook",
    [
        "workbook:\n  - {name: greet, tool: {kind: python, code: 'x = 1', args: {a: 1, b: 2}}}\n",
        "workbook:\n  greet: {kind: python, code: 'x = 1', args: {a: 1, b: 2}}\n",
        "workbook:\n  - {name: greet, type: python, code: 'x = 1', args: {a: 1, b: 2}}\n",
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        "tool: {kind: workbook, name: greet, args: {b: '{{ ctx.b }}'}}",
        "tool: [{t: {action: greet, args: {b: '{{ ctx.b }}'}}}]",
        "action: greet\n    args: {b: '{{ ctx.b }}'}",
    ],
)
def test_actions_of_the_workbook_are_put_in(workbook: str, use: str) -> None:
    made = playbook(f"{workbook}workflow:\n  - step: a\n    {use}\n")
    (task,) = made.steps["a"].tasks
    assert task.kind == "python"
    assert rendered(task, ctx={"b": 9}) == {"code": "x = 1", "args": {"a": 1, "b": 9}}


def test_the_first_version_of_the_language() -> None:
    made = parse("""\
apiVersion: noetl.io/v1
kind: Playbook
name: simple
path: examples/simple
workload: {message: Hello}
workflow:
  - step: start
    next:
      - step: say
        args: {message: "{{ workload.message }}"}
  - step: say
    tool: python
    code: |
      def main(message):
          return {"status": "success", "data": {"message": f"{{{message}}}"}}
    args: {message: "{{ args.message }}"}
    next: [{step: end}]
  - step: end
    type: noop
""")
    assert (made.name, made.path, made.first) == ("simple", "examples/simple", "start")
    (task,) = made.steps["say"].tasks
    assert task.kind == "python"
    config = rendered(task, args={"message": "m"})
    assert config["args"] == {"message": "m"}
    assert "{{{message}}}" in config["code"], "code is never a template"
    assert made.steps["end"].tasks[0].kind == "noop"


INSERT = 'kind: postgres, auth: pg, command: "{}"'


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("INSERT INTO t (a) VALUES (:a)", True),
        ("  -- why\\n /* and how */ insert into t values (1);", True),
        ("INSERT INTO t (a) VALUES (:a) RETURNING id", False),
        ("INSERT INTO t VALUES (1); DELETE FROM t", False),
        ("UPDATE t SET a = 1", False),
        ("SELECT 1", False),
        ("inserted", False),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", False),
    ],
)
def test_an_insert_that_gives_nothing_back_may_wait(command: str, expected: bool) -> None:
    made = step(f"    tool: [{{save: {{{INSERT.format(command)}}}}}]\n")
    assert made.tasks[0].deferrable is expected


@pytest.mark.parametrize(
    ("addition", "other", "expected"),
    [
        ("", "{kind: noop, data: '{{ workload.x }}'}", True),
        (", eval: [{else: {do: continue, set_iter: {n: 1}}}]", "{kind: noop}", True),
        (", eval: [{expr: \"{{ outcome.status == 'error' }}\", do: fail}]", "{kind: noop}", False),
        (", eval: [{else: {do: continue, set_ctx: {r: '{{ outcome }}'}}}]", "{kind: noop}", False),
        (", eval: [{expr: '{{ ctx.x }}', do: retry}]", "{kind: noop}", False),
        ("", "{kind: noop, data: '{{ save.data }}'}", False),
        ("", "{kind: noop, data: '{{ _prev.data }}'}", False),
        ("", "{kind: noop, eval: [{expr: '{{ save.meta }}', do: break}]}", False),
        (", params: {n: '{{ save.result_index }}'}", "{kind: noop}", True),
        (", eval: [{expr: '{{ save.status }}', do: break}]", "{kind: noop}", False),
    ],
)
def test_a_save_whose_outcome_is_read_may_not_wait(
    addition: str, other: str, expected: bool
) -> None:
    save = f"{{{INSERT.format('INSERT INTO t VALUES (1)')}{addition}}}"
    made = step(f"    tool:\n      - save: {save}\n      - other: {other}\n")
    assert made.tasks[0].deferrable is expected


BREAK = ", eval: [{else: {do: break}}]"


@pytest.mark.parametrize(
    ("addition", "other", "read", "expected"),
    [
        ("", "", "{{ load.total }}", True),
        ("", "", "{{ load.data }}", False),
        ("", "", "{{ load }}", False),
        ("", "      - other: {kind: noop}\n", "{{ load.data }}", True),
        (BREAK, "      - other: {kind: noop}\n", "{{ load.data }}", False),
        (", spec: {result: {store: db}}", "", "{{ load.total }}", False),
    ],
)
def test_a_save_that_a_row_ends_with_may_wait_unless_rows_or_its_reference_are_asked_for(
    addition: str, other: str, read: str, expected: bool
) -> None:
    save = f"{{{INSERT.format('INSERT INTO t VALUES (1)')}{addition}}}"
    made = parse(
        HEAD + "workflow:\n  - step: load\n    loop: {in: [1], iterator: n}\n    tool:\n"
        f"      - save: {save}\n{other}    next: use\n"
        f"  - step: use\n    tool: {{kind: noop, data: '{read}'}}\n"
    )
    assert made.steps["load"].tasks[0].deferrable is expected


def test_what_comes_before_a_save_may_read_what_was_before_it_unless_it_jumps() -> None:
    save = INSERT.format("INSERT INTO t VALUES (1)")
    first = "{kind: noop}"
    body = "    tool:\n      - a: {}\n      - b: {{kind: noop, data: '{{{{ _prev.data }}}}'}}\n"
    body += "      - save: {{{}}}\n      - last: {{kind: noop{}}}\n"
    assert step(body.format(first, save, "")).tasks[2].deferrable
    jump = ", eval: [{expr: '{{ ctx.x }}', do: jump, to: b}]"
    assert not step(body.format(first, save, jump)).tasks[2].deferrable


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in sorted(REPOSITORY.glob("examples/**/*.yaml"))
        if not file.name.endswith(".test.yaml") and "kind: Playbook" in file.read_text("utf-8")
    ],
    ids=lambda f: f.stem,
)
def test_the_examples_have_no_problems_but_those_they_are_about(file: Path) -> None:
    made, problems = check(file.read_text("utf-8"))
    about = {"simple_test": "credentialRef", "vector": "embedding_from"}.get(file.stem)
    assert [one for one in problems if about is None or about not in one.message] == []
    assert made is not None


def test_the_saves_of_the_patient_workload_may_wait() -> None:
    made = parse((REPOSITORY / "examples/pft/playbook.yaml").read_text("utf-8"))
    saves = [
        task
        for one in made.steps.values()
        for task in one.tasks
        if one.loop and task.kind == "postgres"
    ]
    assert len(saves) == 6
    assert all(task.deferrable for task in saves)
