"""`streams playbook test`: cases beside a playbook, and what differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.trial.expectations import row_differences, subset_differences

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: load, path: t/load}
workload: {database: "", n: 2}
workflow:
  - step: fetch
    tool: {kind: http, url: http://127.0.0.1:9/rows}
    next:
      - {step: save, when: "{{ fetch.data.rows | length > 0 }}"}
      - {step: nothing}
  - step: save
    tool:
      kind: duckdb
      database: "{{ workload.database }}"
      command: |
        CREATE TABLE saved (id INTEGER, name TEXT);
        INSERT INTO saved VALUES (1, 'Ada'), (2, 'Grace');
  - step: nothing
    tool: {kind: noop}
"""
CASES = """
- name: saves what it fetched
  given: {{database: {database}}}
  mocks:
    fetch: {{result: {{rows: [1, 2]}}}}
  expect:
    steps: [fetch, {second}]
    rows:
      - kind: duckdb
        database: {database}
        query: SELECT id, name FROM saved ORDER BY id
        rows: [{{id: 1, name: Ada}}, {{name: {name}}}]
- name: does nothing without rows
  mocks: {{fetch: {{rows: []}}}}
  expect: {{steps: [fetch, nothing]}}
- name: fails with its target
  mocks: {{fetch: {{rows: [1]}}, save: {{error: gone}}}}
  expect: {{status: FAILED, error: gone}}
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["playbook", "test", *map(str, arguments)])


def files(folder: Path, **changes: str) -> Path:
    (folder / "load.yaml").write_text(PLAYBOOK)
    values = {"database": str(folder / "d.duckdb"), "second": "save", "name": "Grace"}
    (folder / "load.test.yaml").write_text(CASES.format(**(values | changes)))
    return folder / "load.yaml"


def test_the_example_passes() -> None:
    answer = run(ROOT / "examples" / "hello.yaml")
    assert answer.exit_code == 0, answer.output
    assert answer.output.splitlines()[-1] == "3 of 3 cases passed"


def test_cases_with_mocks_steps_and_rows_of_a_query_pass(tmp_path: Path) -> None:
    answer = run(files(tmp_path))
    assert answer.exit_code == 0, answer.output


def test_what_differs_is_printed_and_exits_with_1(tmp_path: Path) -> None:
    answer = run(files(tmp_path, second="nothing", name="Alan"))
    assert answer.exit_code == 1
    lines = [line.strip() for line in answer.output.splitlines()]
    assert "steps: expected fetch, nothing; got fetch, save" in lines
    assert 'rows[0][1].name: expected "Alan", got "Grace"' in lines
    assert f"{tmp_path}/load.test.yaml:2" in lines
    assert lines[-1] == "2 of 3 cases passed"


def test_one_case_can_be_chosen_by_its_name(tmp_path: Path) -> None:
    answer = run(files(tmp_path, name="Alan"), "--case", "without rows", "--json")
    found = json.loads(answer.output)
    assert (answer.exit_code, found["failed"]) == (0, 0)
    assert [case["name"] for case in found["cases"]] == ["does nothing without rows"]
    assert run(tmp_path / "load.yaml", "--case", "no such").exit_code == 2


def test_results_are_written_as_junit(tmp_path: Path) -> None:
    out = tmp_path / "out.xml"
    assert run(files(tmp_path, name="Alan"), "--junit", out).exit_code == 1
    suite = ElementTree.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    failures = [case.find("failure") for case in suite]
    assert failures[0] is not None
    assert 'expected "Alan"' in (failures[0].text or "")
    assert failures[1:] == [None, None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- name: a\n  expect: {stats: FAILED}\n", "unknown key 'stats' (did you mean 'status'?)"),
        ("- expect: {}\n", "'name' is missing in this test case"),
        ("- name: a\n  expect: {status: DONE}\n", "there is no 'DONE'"),
        ("playbook: other.yaml\ncases: []\n", "does not exist"),
        ("- name: [\n", "this is not YAML"),
    ],
)
def test_a_bad_file_of_cases_exits_with_2(tmp_path: Path, text: str, words: str) -> None:
    file = files(tmp_path)
    (tmp_path / "load.test.yaml").write_text(text)
    answer = subprocess.run(
        [sys.executable, "-m", "streams", "playbook", "test", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, words in answer.stderr) == (2, True), answer.stderr


def test_a_case_that_cannot_run_fails_alone(tmp_path: Path) -> None:
    file = files(tmp_path)
    (tmp_path / "load.test.yaml").write_text(
        "- {name: a, mocks: {no_step: 1}, expect: {}}\n"
        "- {name: b, mocks: {fetch: {rows: []}}, expect: {}}\n"
    )
    answer = run(file)
    assert answer.exit_code == 1
    assert "mock no_step: no such step" in answer.output
    assert answer.output.splitlines()[-1] == "1 of 2 cases passed"


def test_a_subset_compares_keys_items_and_kinds() -> None:
    found = {"a": {"b": 1, "c": [1, {"d": True}]}, "e": None}
    assert list(subset_differences("r", {"a": {"c": [1, {"d": True}]}}, found)) == []
    assert list(subset_differences("r", {"a": {"c": [1, {"d": 1}]}}, found)) == [
        "r.a.c[1].d: expected 1, got true"
    ]
    assert list(subset_differences("r", {"a": {"c": [1]}, "f": 2}, found)) == [
        'r.a.c: expected 1 items, got 2: [1,{"d":true}]',
        "r.f: expected 2, got nothing",
    ]
    assert list(row_differences("rows", [], [{"x": 1}])) == [
        'rows: expected 0 rows, got 1: [{"x":1}]'
    ]
