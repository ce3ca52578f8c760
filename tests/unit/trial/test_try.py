"""`streams try`: a playbook in one process, with the events an execution would write."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streams.cli import cli

ROOT = Path(__file__).resolve().parents[3]
HELLO = ROOT / "examples" / "hello.yaml"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
CHILD = """
metadata: {name: child, path: t/child}
workload: {n: 1}
workflow:
  - step: twice
    tool:
      kind: python
      args: {n: "{{ workload.n }}"}
      code: |
        def main(n):
            return {"status": "success", "data": {"twice": n * 2}}
"""
PARENT = """
metadata: {name: parent, path: t/parent}
workload: {rows: [1, 2, 3]}
workflow:
  - step: start
    tool: {kind: playbook, path: t/child, args: {n: 21}}
    next: [{step: each}]
  - step: each
    loop:
      in: "{{ workload.rows }}"
      iterator: row
      spec: {mode: parallel}
      frame_policy: {size: 2, row_concurrency: 2}
    tool:
      - call:
          kind: playbook
          path: t/child
          workload: {n: "{{ iter.row }}"}
    next: [{step: last}]
  - step: last
    tool:
      kind: python
      args: {first: "{{ start.data.twice }}", rows: "{{ each.data }}"}
      code: |
        def main(first, rows):
            return {"status": "success", "data": [first, *(row["twice"] for row in rows)]}
"""
SECRET = "hunter-2-is-secret"
FLAKY = """
metadata: {name: flaky, path: t/flaky}
workflow:
  - step: start
    tool:
      kind: http
      url: http://127.0.0.1:9/nothing
      eval:
        - expr: "{{ outcome.status == 'error' and outcome.http.status == 503 }}"
          do: retry
          attempts: 3
          delay: 0.01
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["try", *map(str, arguments)])


def ran(*arguments: object) -> dict[str, Any]:
    answer = run(*arguments, "--json")
    found: dict[str, Any] = json.loads(answer.output)
    return found


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(HEAD + text if name.endswith(".yaml") else text)
    return file


def test_steps_and_their_results_are_printed_as_they_happen() -> None:
    answer = run(HELLO, "--set", "name=Ada")
    assert answer.exit_code == 0, answer.output
    lines = answer.output.splitlines()
    assert lines[0] == "→ start (tool)"
    assert lines[1].startswith("✓ start ")
    assert lines[1].endswith('{"greeting":"Hello, Ada!"}')
    assert lines[2] == "COMPLETED"


def test_the_events_are_those_of_an_execution() -> None:
    answer = run(HELLO, "--events")
    assert answer.exit_code == 0
    types = [json.loads(line)["event_type"] for line in answer.output.splitlines()]
    assert types == [
        "playbook.initialized",
        "workflow.initialized",
        "step.enter",
        "command.issued",
        "command.claimed",
        "command.completed",
        "step.exit",
        "workflow.completed",
        "playbook.completed",
    ]


def test_playbooks_beside_the_file_are_called(tmp_path: Path) -> None:
    written(tmp_path, "child.yaml", CHILD)
    written(tmp_path, "broken.yaml", "metadata: {path: t/other}\nnothing: t/child\n")
    found = ran(written(tmp_path, "parent.yaml", PARENT))
    assert found["status"] == "COMPLETED", found["error"]
    assert found["result"] == [42, 2, 4, 6]
    assert found["steps"] == ["start", "each", "last"]


def test_a_playbook_that_no_file_has_fails_with_advice(tmp_path: Path) -> None:
    parent = written(tmp_path, "parent.yaml", PARENT)
    answer = run(parent)
    assert answer.exit_code == 1
    assert "--with FILE" in answer.output
    (tmp_path / "elsewhere").mkdir()
    written(tmp_path / "elsewhere", "child.yaml", CHILD)
    assert ran(parent, "--with", tmp_path / "elsewhere")["status"] == "COMPLETED"


def test_a_mock_answers_for_a_step_whatever_runs_it(tmp_path: Path) -> None:
    parent = written(tmp_path, "parent.yaml", PARENT)
    start = written(tmp_path, "start.json", '{"twice": 7}')
    rows = written(tmp_path, "rows.json", '{"answers": [{"twice": 1}, {"result": {"twice": 2}}]}')
    found = ran(parent, "--mock", f"start={start}", "--mock", f"each={rows}")
    assert found["status"] == "COMPLETED", found["error"]
    assert found["result"] == [7, 1, 2, 2]


def test_a_mocked_error_follows_the_rules_of_its_task(tmp_path: Path) -> None:
    flaky = written(tmp_path, "flaky.yaml", FLAKY)
    busy = '{"error": {"message": "busy", "http": {"status": 503}}}'
    twice = written(tmp_path, "m.json", f'{{"answers": [{busy}, {busy}, {{"ok": true}}]}}')
    assert ran(flaky, "--mock", f"start={twice}")["result"] == {"ok": True}
    always = written(tmp_path, "always.json", busy)
    answer = run(flaky, "--mock", f"start={always}")
    assert answer.exit_code == 1
    assert "busy (after 3 tries)" in answer.output


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--mock", "nothing={json}", "no such step"),
        ("--mock", "start.nothing={json}", "no such task"),
        ("--mock", "start", "is not STEP=FILE"),
        ("--credential", "pg={json}", "give an object of fields"),
        ("--set", "name", "is not K=V"),
    ],
)
def test_bad_input_exits_with_2(tmp_path: Path, option: str, value: str, words: str) -> None:
    file = written(tmp_path, "m.json", "[1]")
    answer = subprocess.run(
        [sys.executable, "-m", "streams", "try", HELLO, option, value.format(json=file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, words in answer.stderr) == (2, True), answer.stderr


def test_a_playbook_with_errors_prints_them_and_exits_with_2(tmp_path: Path) -> None:
    bad = "metadata: {path: t/bad}\nworkflow:\n  - step: start\n    tol: {kind: noop}\n"
    answer = run(written(tmp_path, "bad.yaml", bad))
    assert answer.exit_code == 2
    assert "unknown key 'tol' (did you mean 'tool'?)" in answer.stderr


def test_a_credential_is_given_by_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "metadata: {path: t/pg}\nworkflow:\n  - step: start\n    tool:\n"
    text += "      {kind: postgres, auth: pg_main, command: SELECT 1, spec: {timeout_s: 5}}\n"
    file = written(tmp_path, "pg.yaml", text)
    assert "--credential pg_main=FILE.json" in run(file).output
    fields = {"data": {"dsn": f"postgresql://u:{SECRET}@127.0.0.1:9/no?sslmode=bogus"}}
    given = written(tmp_path, "pg.json", json.dumps(fields))
    output = run(file, "--credential", f"pg_main={given}").output
    assert "is not given" not in output
    assert SECRET not in output
    monkeypatch.setenv("NOETL_CREDENTIAL_PG_MAIN", fields["data"]["dsn"])
    assert run(file).output.splitlines()[-1] == output.splitlines()[-1]


def test_a_run_that_does_not_end_in_time_fails(tmp_path: Path) -> None:
    text = "metadata: {path: t/slow}\nworkflow:\n  - step: start\n    tool:\n      kind: python\n"
    text += "      code: |\n        import time\n        def main():\n            time.sleep(60)\n"
    command = [sys.executable, "-m", "streams", "try", written(tmp_path, "slow.yaml", text)]
    answer = subprocess.run(
        [*command, "--timeout", "0.5"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    assert "did not end within 0.5 s; its last event is command.claimed" in answer.stderr


def test_a_large_result_is_printed_whole(tmp_path: Path) -> None:
    text = "metadata: {path: t/big}\nworkflow:\n  - step: start\n    tool:\n      kind: python\n"
    text += "      code: |\n        def main():\n            return {'rows': ['x' * 50] * 5000}\n"
    found = ran(written(tmp_path, "big.yaml", text))
    assert found["result"] == {"rows": ["x" * 50] * 5000}


PLAIN_IMPORTS = (
    "import asyncio, ast, dataclasses, inspect, email.mime.text, http.client, unittest.mock, "
    "xml.dom.minidom, pydoc, doctest"
)


def test_a_cold_start_imports_little_and_takes_little_time() -> None:
    code = (
        "import sys; sys.argv = ['streams', 'try', sys.argv[1]]\n"
        "from streams.cli import cli\ncli(standalone_mode=False)\n"
        "heavy = {'aiohttp', 'pydantic', 'pyarrow', 'duckdb', 'faust', 'confluent_kafka'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    plain = min(_cpu_s(PLAIN_IMPORTS)[0] for _ in range(2))
    used, printed = _cpu_s(code, HELLO)
    assert printed.splitlines()[-1] == "[]"
    # Beside the same machine's time for a part of the standard library: 0.9 s where that is 0.1.
    assert used < 14 * plain


def _cpu_s(code: str, *arguments: str) -> tuple[float, str]:
    """Return the processor time of a program, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout
