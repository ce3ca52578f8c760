"""What a sink requires is asked for before it runs, and nothing else."""

from __future__ import annotations

import pytest

from streams.playbook.parse import check
from streams.playbook.problem import Severity

HEAD = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: p/q}
workflow:
  - step: load
    tool: {kind: noop}
    sink: """


@pytest.mark.parametrize(
    ("sink", "where", "message"),
    [
        ("{storage: duckdb, table: t}", "", "a duckdb sink needs a file"),
        ("{storage: s3}", "", "needs a bucket"),
        ("{storage: gcs}", "", "needs a bucket"),
        ("{storage: kv, data: {key: a, value: 1}}", "", "a kv sink needs an address"),
        ("{storage: graph, statement: MERGE (n)}", "", "a graph sink needs an address"),
        (
            "{storage: graph, spec: {driver: ladybug}, statement: MERGE (n)}",
            "",
            "a graph sink needs a file",
        ),
        ("{storage: bigquery, table: d.t}", "", "a bigquery sink needs a project"),
        ("{storage: snowflake, table: t}", "", "a snowflake sink needs an account"),
        ("{storage: kv, auth: r, data: {key: a, valu: 1}}", ".data.valu", "did you mean 'value'?"),
        ("{storage: kv, auth: r, data: {key: a}}", ".data", "needs 'value' in `data`"),
        (
            "{storage: file, spec: {path: ../x}}",
            ".spec.path",
            "is not a valid name in the folder of sinks",
        ),
        (
            "{storage: s3, spec: {bucket: b, key: /x}}",
            ".spec.key",
            "is not a valid name in the bucket",
        ),
        ("{storage: file, mode: append, format: parquet}", ".format", "nothing can be appended"),
    ],
)
def test_what_would_be_refused_when_it_runs_is_refused_before(
    sink: str, where: str, message: str
) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is None
    matching = [one for one in problems if message in str(one)]
    assert [(one.where, bool(one.hint)) for one in matching] == [(f"workflow[0].sink{where}", True)]


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: duckdb, table: t, auth: d}",
        "{storage: duckdb, table: t, spec: {path: x.duckdb}}",
        "{storage: s3, spec: {bucket: b, key: 'a/{{ execution_id }}..json'}}",
        "{storage: kv, auth: r, data: '{{ result }}'}",
        "{storage: kv, spec: {url: 'redis://h'}, data: {key: a, value: 1, ttl: 5}}",
        "{storage: file, mode: append, format: csv}",
    ],
)
def test_what_is_there_is_not_asked_for(sink: str) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is not None, problems


def test_what_has_no_effect_is_said() -> None:
    playbook, problems = check(HEAD + "{storage: duckdb, table: t, auth: d, chunk_size: 5}")
    assert playbook is not None
    [problem] = problems
    assert (problem.severity, problem.where) == (Severity.WARNING, "workflow[0].sink.chunk_size")


def test_a_file_is_not_written_in_several_places_at_the_same_time() -> None:
    playbook, problems = check(HEAD + "{storage: file, chunk_size: 5, batch: true, concurrency: 2}")
    assert playbook is not None
    [problem] = problems
    assert (problem.severity, problem.where) == (Severity.WARNING, "workflow[0].sink.concurrency")
    assert "one part after the other" in problem.message


def test_a_mode_that_nothing_has_is_told_once() -> None:
    _, problems = check(HEAD + "{storage: duckdb, table: t, auth: d, mode: insert}")
    assert [one.message for one in problems] == ["there is no 'insert'"]


@pytest.mark.parametrize(
    ("sink", "where"),
    [
        ("{storage: s3, auth: a, key: [id], spec: {bucket: b}}", ".key"),
        ("{storage: gcs, auth: a, table: t, spec: {bucket: b}}", ".table"),
        ("{storage: kv, auth: a, key: [id], data: {key: a, value: b}}", ".key"),
        ("{storage: kv, auth: a, table: t, data: {key: a, value: b}}", ".table"),
        ("{storage: event_log, auth: a}", ".auth"),
        ("{storage: event_log, key: [id]}", ".key"),
        ("{storage: event_log, table: t}", ".table"),
        ("{spec: {bucket: b}}", ".spec"),
        ("{storage: file, credential: a}", ".credential"),
        ("{storage: file, key: [id]}", ".key"),
        ("{storage: file, table: t}", ".table"),
        ("{storage: file, mode: append, chunk_size: 2}", ".chunk_size"),
        ("{storage: file, batch: false, chunk_size: 2}", ".chunk_size"),
        ("{storage: postgres, auth: a, table: t, key: [id]}", ".key"),
        ("{storage: duckdb, auth: a, table: t, key: [id], mode: overwrite}", ".key"),
        ("{storage: vector, auth: a, table: t, key: [id], mode: append}", ".key"),
        ("{storage: kv, auth: a, spec: {url: 'redis://h'}}", ".auth"),
        ("{storage: duckdb, auth: a, table: t, spec: {database: d}}", ".auth"),
        ("{storage: postgres, auth: a, table: t, spec: {table: t}}", ".spec.table"),
        ("{storage: postgres, auth: a, statement: SELECT 1, spec: {table: t}}", ".spec.table"),
    ],
)
def test_whatever_does_nothing_is_warned_of(sink: str, where: str) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is not None, problems
    matching = [one for one in problems if one.severity is Severity.WARNING]
    assert [(one.where, bool(one.hint)) for one in matching] == [(f"workflow[0].sink{where}", True)]


@pytest.mark.parametrize(
    ("sink", "where", "message"),
    [
        (
            "{storage: vector, auth: a, table: t, mode: upsert, key: [tenant, id]}",
            ".key",
            "identifies rows by 'id' alone",
        ),
        (
            "{storage: vector, auth: a, table: t, mode: update, key: other, spec: {id_column: u}}",
            ".key",
            "identifies rows by 'u' alone",
        ),
        (
            "{storage: postgres, auth: a, table: t, spec: {table: u}}",
            ".spec.table",
            "'u' is not written to: `table` is 't'",
        ),
        (
            "{storage: s3, auth: a, spec: {bucket: b, prefix: 2026/11, key: a.json}}",
            ".spec.prefix",
            "'prefix' has no effect beside 'key'",
        ),
        (
            "{storage: gcs, auth: a, spec: {bucket: b, path: a, key: b}}",
            ".spec.path",
            "'path' has no effect beside 'key'",
        ),
        (
            "{storage: duckdb, table: t, spec: {database: a, path: b}}",
            ".spec.path",
            "'path' has no effect beside 'database'",
        ),
        (
            "{storage: postgres, auth: a, table: t, spec: {dsn: 'postgresql://h/d'}}",
            ".spec.dsn",
            "the credential names the database",
        ),
    ],
)
def test_what_would_leave_other_data_than_was_meant_is_refused_but_runs_on_where_it_is_registered(
    sink: str, where: str, message: str
) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is None
    [problem] = [one for one in problems if message in one.message]
    assert (problem.where, problem.severity) == (f"workflow[0].sink{where}", Severity.ERROR)
    running, problems = check(HEAD + sink, clients=False)
    assert running is not None
    [problem] = [one for one in problems if message in one.message]
    assert problem.severity is Severity.WARNING


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: vector, auth: a, table: t, key: id}",
        "{storage: vector, auth: a, table: t, key: [u], spec: {id_column: u}}",
        "{storage: vector, auth: a, table: t, key: [u], spec: {id_column: '{{ workload.u }}'}}",
        "{storage: s3, auth: a, spec: {bucket: b, prefix: 2026/11}, chunk_size: 2, batch: true}",
        "{storage: event_log, spec: {timeout: 5}}",
        "{storage: postgres, auth: a, spec: {table: t}, mode: upsert, key: id}",
    ],
)
def test_what_has_an_effect_is_not_warned_of(sink: str) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is not None
    assert problems == ()


def test_a_driver_of_another_package_may_heed_what_ours_do_not() -> None:
    sink = "{storage: kv, spec: {driver: elsewhere}, key: [id], table: t}"
    playbook, problems = check(HEAD + sink, clients=False)
    assert (playbook is not None, problems) == (True, ())
