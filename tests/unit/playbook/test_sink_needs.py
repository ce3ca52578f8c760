"""What a sink must be told is asked for before it runs, and only what it must be told."""

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
        ("{storage: file, spec: {path: ../x}}", ".spec.path", "is no name in the folder of sinks"),
        ("{storage: s3, spec: {bucket: b, key: /x}}", ".spec.key", "is no name in the bucket"),
        ("{storage: file, mode: append, format: parquet}", ".format", "nothing can be appended"),
    ],
)
def test_what_would_be_refused_when_it_runs_is_refused_before(
    sink: str, where: str, message: str
) -> None:
    playbook, problems = check(HEAD + sink)
    assert playbook is None
    told = [one for one in problems if message in str(one)]
    assert [(one.where, bool(one.hint)) for one in told] == [(f"workflow[0].sink{where}", True)]


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
    [told] = problems
    assert (told.severity, told.where) == (Severity.WARNING, "workflow[0].sink.chunk_size")


def test_a_file_is_not_written_in_several_places_at_the_same_time() -> None:
    playbook, problems = check(HEAD + "{storage: file, chunk_size: 5, batch: true, concurrency: 2}")
    assert playbook is not None
    [told] = problems
    assert (told.severity, told.where) == (Severity.WARNING, "workflow[0].sink.concurrency")
    assert "one part after the other" in told.message


def test_a_mode_that_nothing_has_is_told_once() -> None:
    _, problems = check(HEAD + "{storage: duckdb, table: t, auth: d, mode: insert}")
    assert [one.message for one in problems] == ["there is no 'insert'"]
