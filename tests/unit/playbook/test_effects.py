from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.playbook.parse import check
from streams.playbook.problem import Severity
from streams.playbook.repeated_effects import may_repeat

TEXT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: tests/effects}
workflow:
  - step: send
    tool:
      - look: {kind: http, url: "http://127.0.0.1/"}
      - send:
          kind: http
          url: http://127.0.0.1/
          json: {a: 1}
      - emit: {kind: kafka, topic: reports, value: 1}
"""


def sql(command: str, **more: Any) -> dict[str, Any]:
    return {"command": command, **more}


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("http", {"url": "x", "method": "post"}),
        ("http", {"url": "x", "method": "PUT", "headers": {"Accept": "text/plain"}}),
        ("http", {"url": "x", "method": "DELETE"}),
        ("http", {"url": "x", "json": {"a": 1}}),
        ("kafka", {"topic": "t", "value": 1}),
        ("postgres", sql("UPDATE t SET n = n + 1", fence=False)),
        ("postgres", sql("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", fence=False)),
        ("postgres", sql("CALL pay(:n)")),
        ("postgres", sql("SELECT 1; TRUNCATE t")),
        ("duckdb", sql("INSERT INTO t VALUES (1)", database="a.db")),
    ],
)
def test_an_effect_without_fence_or_key_may_come_twice(kind: str, config: Any) -> None:
    assert may_repeat(kind, config) is not None


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("http", {"url": "x"}),
        ("http", {"url": "x", "method": "{{ workload.method }}"}),
        ("http", {"url": "x", "method": "POST", "headers": {"idempotency-key": "{{ iter.id }}"}}),
        ("http", {"url": "x", "method": "POST", "headers": "{{ ctx.headers }}"}),
        ("postgres", sql("INSERT INTO t (a) VALUES (:a)")),
        ("postgres", sql("UPDATE t SET n = n + 1")),
        ("postgres", sql("WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x")),
        ("postgres", sql("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", fence=False)),
        ("postgres", sql("SELECT 'CALL x; TRUNCATE t' -- CALL y\n", fence=False)),
        ("postgres", sql("CREATE TABLE IF NOT EXISTS t (a text)")),
        ("postgres", sql("CALL pay(:n)", fence=True)),
        ("postgres", sql("{{ workload.command }}")),
        ("duckdb", sql("CREATE TABLE t AS SELECT 1; INSERT INTO t VALUES (2)")),
        ("duckdb", sql("INSERT OR REPLACE INTO t VALUES (1)", database="a.db")),
        ("python", {"code": "def main(): ..."}),
        ("playbook", {"path": "a/b"}),
        ("noop", {}),
    ],
)
def test_what_reads_is_fenced_keyed_or_unknown_is_not_mentioned(kind: str, config: Any) -> None:
    assert may_repeat(kind, config) is None


def test_check_notes_it_where_it_is() -> None:
    made, problems = check(TEXT)
    assert made is not None
    assert [(one.line, one.column, one.severity) for one in problems] == [
        (9, 17, Severity.NOTE),
        (12, 22, Severity.NOTE),
    ]
    assert all(one.message.startswith("at least once: ") and one.hint for one in problems)


def test_the_command_tells_it_as_text_and_as_json(tmp_path: Path) -> None:
    file = tmp_path / "send.yaml"
    file.write_text(TEXT)
    said = CliRunner().invoke(cli, ["playbook", "check", str(file)])
    assert said.exit_code == 0
    assert "send.yaml:9:17: note: workflow[0].tool[1].send.kind: at least once" in said.output
    ran = CliRunner().invoke(cli, ["playbook", "check", str(file), "--json"])
    (shown,) = orjson.loads(ran.output)["files"]
    assert shown["ok"]
    assert [(one["line"], one["severity"]) for one in shown["problems"]] == [
        (9, "note"),
        (12, "note"),
    ]
