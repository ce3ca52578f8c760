"""`sink:` blocks become tasks; what is wrong with one is said where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streams.playbook.errors import BadSink
from streams.playbook.model import Playbook, Task
from streams.playbook.parse import check, parse
from streams.playbook.problem import Severity
from streams.playbook.sinks.rows import group_by_columns, quote_table, range_of, rows_of, statement

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: p/q}\n"


def made(body: str) -> Playbook:
    return parse(HEAD + body)


def step(sink: str, *, tool: str = "{kind: noop}", more: str = "") -> str:
    return f"workflow:\n  - step: load\n    tool: {tool}\n{more}    sink: {sink}\n"


def said(sink: str, **rest: Any) -> list[str]:
    return [str(one) for one in check(HEAD + step(sink, **rest))[1]]


def task_of(sink: str) -> Task:
    return made(step(sink)).steps["load"].tasks[-1]


SCOPE: dict[str, Any] = {
    "execution_id": "7",
    "result": {"a": 1},
    "data": {"a": 1},
    "this": {"status": "success", "data": {"a": 1}, "meta": {}, "error": None},
}


def test_a_declarative_sink_becomes_a_postgres_task_with_bound_values() -> None:
    task = task_of(
        "{tool: postgres, auth: pg, table: Hello, mode: upsert, key: [id],"
        " data: {id: '{{ execution_id }}', payload: '{{ result }}'}}"
    )
    assert (task.label, task.kind, task.deferrable) == ("sink", "postgres", True)
    assert task.config.render(SCOPE) == {
        "auth": "pg",
        "command": 'INSERT INTO "hello" ("id", "payload") VALUES (:c0, :c1) '
        'ON CONFLICT ("id") DO UPDATE SET "payload" = EXCLUDED."payload"',
        "rows": [{"c0": "7", "c1": {"a": 1}}],
        "reference": {"store": "db", "key": "Hello", "range": "id:7"},
    }


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", 'INSERT INTO "s"."t" ("k", "v") VALUES (:c0, :c1)'),
        ("update", 'UPDATE "s"."t" SET "v" = :c1 WHERE "k" = :c0'),
        ("overwrite", 'DELETE FROM "s"."t"; INSERT INTO "s"."t" ("k", "v") VALUES (:c0, :c1)'),
        (
            "upsert",
            'INSERT INTO "s"."t" ("k", "v") VALUES (:c0, :c1) '
            'ON CONFLICT ("k") DO UPDATE SET "v" = EXCLUDED."v"',
        ),
    ],
)
def test_every_mode_is_one_statement(mode: str, expected: str) -> None:
    assert statement("s.t", mode, ("k",), ("k", "v")) == expected


def test_names_are_quoted_so_that_no_data_is_ever_sql() -> None:
    assert quote_table("a; drop table b; --") == '"a; drop table b; --"'
    with pytest.raises(BadSink):
        quote_table('a"; drop table b; --')
    assert quote_table('"My Table".T') == '"My Table"."t"'
    hostile = 'x"); DELETE FROM t; --'
    made = statement("t", "append", (), (hostile,))
    assert made == 'INSERT INTO "t" ("x""); DELETE FROM t; --") VALUES (:c0)'


def test_no_name_of_a_column_is_taken_for_the_place_of_another() -> None:
    assert statement("t", "append", (), ("c1", "a b")) == (
        'INSERT INTO "t" ("c1", "a b") VALUES (:c0, :c1)'
    )


def test_a_column_in_quotes_is_meant_as_it_stands() -> None:
    made = statement("t", "update", ('"Id"',), ('"Id"', "Name", 'a"b'))
    assert made == 'UPDATE "t" SET "name" = :c1, "a""b" = :c2 WHERE "Id" = :c0'


def test_rows_go_together_where_they_have_the_same_columns() -> None:
    a, b, c = {"id": 1, "v": 1}, {"w": 1, "id": 2}, {"v": 2, "id": 3}
    assert group_by_columns([a, b, c], ["id"]) == [[a, c], [b]]
    again = {"id": 1, "v": 3, "w": 1}
    assert group_by_columns([a, again, c], ["id"]) == [[a], [again], [c]]
    with pytest.raises(BadSink, match="'id' is not a column of a row: v"):
        group_by_columns([a, {"v": 1}], ["id"])


def test_a_column_that_a_row_lacks_is_in_no_statement_of_its_own() -> None:
    task = task_of("{storage: postgres, auth: pg, table: t, mode: upsert, key: id}")
    rows = [{"id": 1, "v": "a"}, {"id": 2}]
    config: Any = task.config.render({**SCOPE, "result": rows})
    assert [(one["command"], one["rows"]) for one in config["saves"]] == [
        (statement("t", "upsert", ("id",), ("id", "v")), [{"c0": 1, "c1": "a"}]),
        (statement("t", "upsert", ("id",), ("id",)), [{"c0": 2}]),
    ]


def test_a_reference_tells_only_the_beginning_of_a_long_key() -> None:
    assert range_of([{"k": "x" * 200_000}], ["k"]) == f"k:{'x' * 80}"


def test_the_time_of_a_sink_is_that_of_its_task() -> None:
    by_data = task_of("{storage: postgres, auth: pg, table: t, spec: {timeout: 5}}")
    by_statement = task_of(
        "{storage: postgres, auth: pg, statement: SELECT 1, spec: {timeout: '{{ execution_id }}'}}"
    )
    assert [one.config.render(SCOPE)["timeout"] for one in (by_data, by_statement)] == [5, "7"]  # type: ignore[index,call-overload]


@pytest.mark.parametrize("data", [None, 5, "text", [1], [{}], {}])
def test_a_table_takes_rows_only(data: Any) -> None:
    with pytest.raises(BadSink):
        rows_of(data)


def test_only_inserts_wait_for_the_end_of_a_frame() -> None:
    waits = {
        mode: task_of(f"{{storage: postgres, auth: pg, table: t, mode: {mode}, key: a}}").deferrable
        for mode in ("append", "upsert", "update", "overwrite")
    }
    assert waits == {"append": True, "upsert": True, "update": False, "overwrite": False}


@pytest.mark.parametrize("on", ["error", "always"])
def test_what_a_failed_row_leaves_does_not_wait_for_a_frame_that_drops_its_saves(on: str) -> None:
    assert not task_of(f"{{storage: postgres, auth: pg, table: t, on: {on}}}").deferrable


def test_a_statement_is_the_authors_own_with_its_parameters() -> None:
    task = task_of(
        "{tool: postgres, auth: pg, statement: 'INSERT INTO t (p) VALUES (:p)',"
        " params: {p: '{{ tojson(result) }}'}}"
    )
    config: Any = task.config.render(SCOPE)
    assert (config["command"], config["params"]) == (
        "INSERT INTO t (p) VALUES (:p)",
        {"p": '{"a":1}'},
    )


def test_vectors_go_to_the_columns_that_the_spec_names() -> None:
    task = task_of(
        "{storage: vector, auth: pg, spec: {driver: pgvector, table: e, vector_column: v},"
        " data: {id: '{{ execution_id }}', vector: [1, 2], meta: {a: 1}}}"
    )
    config: Any = task.config.render(SCOPE)
    assert config["rows"] == [{"c0": "7", "c1": [1, 2], "c2": {"a": 1}}]
    assert config["command"].endswith('"meta" = EXCLUDED."meta"')
    assert config["reference"]["store"] == "vector"


def test_a_task_of_a_pipeline_has_a_sink_of_its_own() -> None:
    body = step(
        "{storage: event_log}",
        tool="[{a: {kind: noop, sink: {storage: file, data: '{{ result }}'}}}, {b: {kind: noop}}]",
    )
    tasks = made(body).steps["load"].tasks
    assert [(task.label, task.sink.of if task.sink else "-") for task in tasks] == [
        ("a", "-"),
        ("a_sink", "a"),
        ("b", "-"),
        ("sink", None),
    ]


def test_a_saved_row_is_not_deferred_when_a_sink_persists_what_came_of_it() -> None:
    save = "kind: postgres, auth: pg, command: 'INSERT INTO t VALUES (:a)', params: {a: 1}"
    plain = step("{storage: event_log}", tool=f"[{{a: {{{save}}}}}]")
    kept = step("{storage: event_log}", tool=f"[{{a: {{{save}, sink: {{storage: file}}}}}}]")
    assert made(plain).steps["load"].tasks[0].deferrable
    assert not made(kept).steps["load"].tasks[0].deferrable


def test_the_sink_of_a_loop_is_a_step_behind_it_that_takes_over_its_arcs() -> None:
    playbook = made(
        "workflow:\n"
        "  - step: load\n"
        "    loop: {in: [1, 2]}\n"
        "    tool: {kind: noop}\n"
        "    sink: {storage: file, data: '{{ result }}'}\n"
        "    next: [{step: bad, when: \"{{ load.status == 'error' }}\"}, {step: end}]\n"
        "  - step: bad\n"
        "  - step: end\n"
    )
    load, after = playbook.steps["load"], playbook.steps["load_sink"]
    assert [arc.step for arc in load.arcs] == ["load_sink", "bad"]
    assert [arc.step for arc in after.arcs] == ["bad", "end"]
    assert "load" in after.reads
    failed = {"load": {"status": "error"}}
    assert load.arcs[1].when is not None
    assert load.arcs[1].when.render(failed) is True


def test_the_playbooks_own_sink_comes_last() -> None:
    playbook = made("workflow:\n  - step: a\n    next: b\n  - step: b\nsink: {storage: file}\n")
    assert playbook.last == "playbook_sink"
    assert playbook.steps["playbook_sink"].reads == {"b"}


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        ("{storage: postgress}", "did you mean 'postgres'?"),
        ("{storage: file, formt: csv}", "unknown key 'formt' (did you mean 'format'?)"),
        ("{storage: postgres, table: t}", "a postgres sink needs `auth`"),
        ("{storage: duckdb}", "a duckdb sink needs a table"),
        ("{storage: duckdb, table: t, mode: upsert}", "mode upsert needs a key"),
        (
            "{storage: duckdb, table: t, mode: upsert, key: idd, data: {id: 1}}",
            "the key 'idd' is not a column of `data`",
        ),
        ("{storage: file, mode: upsert}", "file has no mode 'upsert'"),
        ("{storage: kv, format: csv}", "kv has no format"),
        ("{storage: graph, data: {a: 1}}", "a graph sink needs a statement"),
        ("{storage: s3, statement: SELECT 1}", "s3 takes no statement"),
        ("{storage: file, data: 1, args: 2}", "'args' repeats 'data'"),
        ("{storage: duckdb, statement: 'SELECT :a', params: {}}", ":a has no value"),
        ("{storage: duckdb, statement: SELECT 1, mode: append}", "has no meaning beside"),
        ("{storage: duckdb, statement: 'SELECT {{ a }}'}", "values are never put into"),
        (
            "{storage: graph, spec: {dialect: gremlin}, statement: g.V()}",
            "there is no driver 'gremlin' for graph here",
        ),
        (
            "{storage: graph, spec: {dialect: sparql}, statement: ASK}",
            "there is no driver 'sparql' for graph here",
        ),
        (
            "{storage: graph, auth: g, spec: {driver: neo4j, dialect: gremlin}, statement: g.V()}",
            "neo4j speaks cypher, not gremlin",
        ),
        (
            "{storage: graph, spec: {driver: ladybug, path: g, dialect: sparql}, statement: ASK}",
            "ladybug speaks cypher, not sparql",
        ),
        (
            "{storage: graph, auth: g, spec: {driver: neo4j, dialect: sql}, statement: SELECT 1}",
            "neo4j speaks cypher, not sql",
        ),
        (
            "{storage: snowflake, auth: s, table: t, spec: {driver: snowflake, dialect: sparql}}",
            "snowflake speaks sql, not sparql",
        ),
        (
            "{tool: bigquery, auth: b, statement: g, spec: {driver: bigquery, dialect: gremlin}}",
            "bigquery speaks sql, not gremlin",
        ),
        ("{storage: kv, spec: {driver: dynamodb}}", "there is no driver 'dynamodb' for kv"),
        ("{storage: file, eval: [{else: {do: jump, to: sink}}]}", "a sink cannot jump"),
        ("{storage: file, when: always}", "is a text, which is always true"),
    ],
)
def test_what_is_wrong_with_a_sink_is_said(sink: str, expected: str) -> None:
    text = HEAD + step(sink)
    playbook, problems = check(text)
    assert playbook is None
    assert any(expected in str(one) and one.line >= 7 for one in problems), problems


def test_a_driver_of_another_package_may_speak_any_dialect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = HEAD + step(
        "{storage: graph, auth: g, spec: {driver: tinker, dialect: gremlin}, statement: g.V()}"
    )
    assert check(text)[0] is None
    for module in ("storages", "check"):
        monkeypatch.setattr(
            f"streams.playbook.sinks.{module}.plugged", lambda: frozenset({"graph.tinker"})
        )
    assert check(text)[1] == ()


def test_a_registered_playbook_with_a_strange_dialect_runs_on() -> None:
    sink = "{tool: graph, auth: g, spec: {driver: neo4j, dialect: gremlin}, statement: MERGE (n)}"
    playbook, [problem] = check(HEAD + step(sink), clients=False)
    assert (playbook is not None, problem.severity) == (True, Severity.WARNING)


@pytest.mark.parametrize(
    ("sink", "is_noted"),
    [
        ("{storage: file, mode: append}", True),
        ("{storage: file}", False),
        ("{storage: kv, mode: append, data: {key: a, value: b}}", True),
        ("{storage: kv, data: {key: a, value: b}}", False),
        ("{storage: snowflake, table: t}", True),
        ("{storage: snowflake, table: t, mode: upsert, key: a}", False),
        ("{storage: graph, statement: 'CREATE (n)'}", True),
        ("{storage: graph, statement: 'MERGE (n)'}", False),
        ("{storage: graph, statement: 'MERGE (n) ON  CREATE SET n.a = 1'}", False),
        ("{storage: graph, statement: 'MERGE (n) SET n += {a: 1}'}", False),
        ("{storage: graph, statement: 'MATCH (n) SET n.v = n.v + 1'}", True),
        ("{storage: graph, statement: 'MATCH (n) SET n.v = coalesce(n.v, 0) + 1'}", True),
        ("{storage: snowflake, statement: 'UPDATE t SET n = n + 1'}", True),
        ("{storage: snowflake, statement: 'UPDATE t SET n = 1; INSERT INTO t VALUES (1)'}", True),
        ("{storage: snowflake, statement: 'UPDATE t SET n = 1 WHERE id = 2;'}", False),
    ],
)
def test_at_least_once_is_noted(sink: str, is_noted: bool) -> None:
    assert any("at least once" in one for one in said(sink)) is is_noted


def test_a_deprecated_word_is_noted_and_read() -> None:
    sink = "{storage: postgres, credentialRef: pg, table: t}"
    _, problems = check(HEAD + step(sink))
    [note] = [one for one in problems if "credentialRef" in one.message]
    assert note.severity is Severity.NOTE
    config: Any = task_of(sink).config.render(SCOPE)
    assert config["auth"] == "pg"


def test_a_client_that_is_not_installed_is_refused_by_check_but_not_by_a_role(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streams.playbook.sinks.storages._is_there", lambda module: False)
    text = HEAD + step("{storage: kv, auth: r, data: {key: a, value: b}}")
    playbook, problems = check(text)
    assert playbook is None
    assert 'pip install "noetl-streams[kv]"' in str(problems[0])
    assert parse(text, clients=False).steps["load"].tasks[-1].kind == "sink"


def test_a_row_of_a_loop_cannot_overwrite_a_table() -> None:
    sink = "{storage: duckdb, table: t, mode: overwrite}"
    problems = said("{}", tool=f"{{kind: noop, sink: {sink}}}", more="    loop: {in: [1]}\n")
    assert any("every row would empty the table" in one for one in problems)


@pytest.mark.parametrize("on", ["error", "always"])
def test_the_sink_of_a_loop_may_persist_its_failure(on: str) -> None:
    assert said(f"{{storage: file, on: {on}}}", more="    loop: {in: [1]}\n") == []


def test_names_of_a_sink_are_known_in_it_only() -> None:
    assert not any("is not a known name" in one for one in said("{data: '{{ this.status }}'}"))
    outside = said("{}", tool="{kind: noop, data: '{{ this.status }}'}")
    assert any("'this' is not a known name" in one for one in outside)


@pytest.mark.parametrize(
    ("storage", "statement", "params"),
    [
        ("duckdb", "SELECT $$ it's :a $$, E'it\\'s :b', :c", "c"),
        ("graph", "MATCH (a)--(b {id: $c}) RETURN a // it's $old", "c"),
        ("graph", "RETURN 'it\\'s $a', $c", "c"),
    ],
)
def test_what_is_quoted_in_a_statement_is_no_parameter(
    storage: str, statement: str, params: str
) -> None:
    block = json.dumps({"storage": storage, "statement": statement, "params": {params: 1}})
    assert not [one for one in said(block) if "has no value" in one or "is not in" in one]


def test_a_step_named_as_sinks_name_what_they_persist_is_warned_of() -> None:
    text = HEAD + "workflow: [{step: result, tool: {kind: noop}}]\n"
    [problem] = check(text)[1]
    assert (problem.severity, "not as this step" in problem.message) == (Severity.WARNING, True)


def test_the_sink_of_a_task_takes_no_other_tasks_name() -> None:
    steps = made(
        "workflow:\n  - step: a\n    tool:\n      - x: {kind: noop, sink: {storage: file}}\n"
        "      - x_sink: {kind: noop}\n"
    ).steps
    assert [task.label for task in steps["a"].tasks] == ["x", "x_sink_", "x_sink"]


@pytest.mark.parametrize(
    "sink",
    [
        "storage: file, spec: {path: NAME}",
        "storage: s3, spec: {bucket: b, key: NAME}",
        "storage: s3, spec: {bucket: b, path: NAME}",
        "storage: gcs, spec: {bucket: b, path: NAME}",
    ],
)
def test_rows_that_would_write_one_file_are_warned_of(sink: str) -> None:
    def warned(name: str) -> bool:
        tool = f"{{kind: noop, sink: {{{sink.replace('NAME', repr(name))}}}}}"
        problems = said("{}", tool=tool, more="    loop: {in: [1]}\n")
        return any("only the last one remains" in one for one in problems)

    assert (warned("a.json"), warned("{{ iter.item }}.json")) == (True, False)


def test_a_sink_uses_the_login_of_the_task_that_speaks_to_the_same_database() -> None:
    sink = "{storage: postgres, table: t, data: {a: 1}}"
    text = HEAD + "credentials: [{name: one}, {name: two}]\n"
    queried = text + step(sink, tool="{kind: postgres, auth: two, command: SELECT 1}")
    config: Any = parse(queried).steps["load"].tasks[-1].config.render(SCOPE)
    assert config["auth"] == "two"
    called = text + step(sink, tool="{kind: http, auth: two, url: 'http://127.0.0.1/'}")
    assert any("needs `auth`" in str(one) for one in check(called)[1])
