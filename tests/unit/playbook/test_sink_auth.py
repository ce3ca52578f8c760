"""Which credential a sink uses that names none: never one in the place of another."""

from __future__ import annotations

from typing import Any

import pytest

from streams.playbook.model import Playbook
from streams.playbook.parse import check, parse
from streams.playbook.problem import Problem, Severity

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: p/q}\n"
ARCHIVE = "credentials: [{name: archive}]\n"
LOOP = "    loop: {in: [1, 2], iterator: row}\n"
BOOK = "workbook: [{name: ask, tool: {kind: postgres, auth: pgx, command: SELECT 1}}]\n"
ASKED = "{kind: postgres, auth: pgx, command: SELECT 1}"
ROWS = "{storage: postgres, table: t, data: {id: 1}}"


def text(sink: str, *, tool: str = "{kind: noop}", loop: str = "", top: str = "") -> str:
    return f"{HEAD}{top}workflow:\n  - step: load\n{loop}    tool: {tool}\n    sink: {sink}\n"


def auth_of(playbook: Playbook) -> Any:
    """Return the credential of the last task, which is the sink's."""
    last = [*playbook.steps.values()][-1].tasks[-1]
    assert last.sink is not None
    address: Any = last.sink.address.render({"workload": {"db": "chosen"}})
    config: Any = last.config.render({"workload": {"db": "chosen"}, "result": {"id": 1}})
    assert config.get("auth") == address.get("auth")
    return address.get("auth")


def questions(problems: tuple[Problem, ...]) -> list[Severity]:
    return [one.severity for one in problems if "which credential?" in one.message]


@pytest.mark.parametrize("loop", ["", LOOP])
@pytest.mark.parametrize("top", ["", ARCHIVE])
@pytest.mark.parametrize(
    "tool",
    [
        ASKED,
        f"[{{a: {{kind: noop}}}}, {{b: {ASKED}}}]",
        "{kind: postgres, auth: {type: postgres, credential: pgx}, command: SELECT 1}",
        "{kind: workbook, action: ask}",
        "[{a: {action: ask}}]",
    ],
)
@pytest.mark.parametrize("storage", ["postgres", "vector"])
def test_a_sink_writes_where_the_task_before_it_reads(
    storage: str, tool: str, top: str, loop: str
) -> None:
    sink = f"{{storage: {storage}, table: t, data: {{id: 1, vector: [1]}}}}"
    assert auth_of(parse(text(sink, tool=tool, loop=loop, top=BOOK + top))) == "pgx"


@pytest.mark.parametrize("how", ["tool: workbook", "type: workbook"])
def test_an_action_of_a_flat_step_counts(how: str) -> None:
    made = f"{HEAD}{BOOK}workflow:\n  - step: load\n    {how}\n    action: ask\n    sink: {ROWS}\n"
    assert auth_of(parse(made)) == "pgx"


def test_the_sink_of_a_call_has_the_credential_of_the_tasks_beside_it() -> None:
    tool = f"[{{a: {ASKED}}}, {{b: {{kind: playbook, path: x/y}}}}]"
    playbook = parse(text(ROWS, tool=tool, top=ARCHIVE))
    assert [*playbook.steps] == ["load", "load_sink"]
    assert auth_of(playbook) == "pgx"


def test_tasks_that_do_not_agree_are_asked_about() -> None:
    tool = f"[{{a: {ASKED}}}, {{b: {{kind: postgres, auth: other, command: SELECT 1}}}}]"
    for loop in ("", LOOP):
        made = text(ROWS, tool=tool, loop=loop, top=ARCHIVE)
        assert questions(check(made)[1]) == [Severity.ERROR]
        running, problems = check(made, clients=False)  # what is registered runs on
        assert running is not None
        assert (auth_of(running), questions(problems)) == ("archive", [Severity.WARNING])


def test_a_credential_that_a_row_chooses_is_not_that_of_the_loops_sink() -> None:
    tool = "{kind: postgres, auth: '{{ iter.row.db }}', command: SELECT 1}"
    made = text(ROWS, tool=tool, loop=LOOP, top=ARCHIVE)
    assert questions(check(made)[1]) == [Severity.ERROR]
    tool = "{kind: postgres, auth: '{{ workload.db }}', command: SELECT 1}"
    assert auth_of(parse(text(ROWS, tool=tool, loop=LOOP, top=ARCHIVE))) == "chosen"


def test_a_vector_sink_of_another_package_is_not_given_the_login_of_postgres() -> None:
    sink = "{storage: vector, table: t, spec: {driver: elsewhere}, data: {id: 1, vector: [1]}}"
    playbook, _ = check(text(sink, tool=ASKED, top=ARCHIVE), clients=False)
    assert playbook is not None
    assert auth_of(playbook) == "archive"


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: postgres, table: t, data: {id: 1}}",
        "{storage: vector, table: t, data: {id: 1, vector: [1]}}",
        "{storage: kv, data: {key: a, value: b}}",
        "{storage: graph, statement: MERGE (n)}",
        "{storage: snowflake, table: t, mode: upsert, key: id}",
        "{storage: bigquery, table: d.t}",
        "{storage: s3}",
        "{storage: gcs}",
    ],
)
def test_a_sink_that_says_nothing_of_where_has_the_playbooks_only_credential(sink: str) -> None:
    for top in (ARCHIVE, "credentials: {archive: stored/name}\n"):
        playbook, problems = check(text(sink, top=top))
        assert (playbook and auth_of(playbook), problems) == ("archive", ())
    two = "credentials: [{name: archive}, {name: other}]\n"
    for top in ("", two):
        assert check(text(sink, top=top))[0] is None
    for last in ("", "sink: "):  # the playbook's own sink stands behind no task
        made = text(sink, top=ARCHIVE) if not last else f"{text('{}', top=ARCHIVE)}{last}{sink}\n"
        assert auth_of(parse(made)) == "archive"


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: duckdb, table: t}",
        "{storage: graph, spec: {driver: ladybug}, statement: MERGE (n)}",
    ],
)
def test_the_login_of_a_server_is_never_taken_for_the_name_of_a_file(sink: str) -> None:
    playbook, problems = check(text(sink, top=ARCHIVE))
    assert playbook is None
    assert any("needs a file" in one.message for one in problems)


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: postgres, table: t, spec: {dsn: 'postgresql://h/d'}}",
        "{storage: kv, spec: {url: 'redis://h'}, data: {key: a, value: b}}",
        "{storage: graph, spec: {url: 'bolt://h'}, statement: MERGE (n)}",
        "{storage: duckdb, table: t, spec: {database: d}}",
        "{storage: file}",
        "{storage: event_log}",
    ],
)
def test_a_sink_that_says_where_or_has_no_login_is_given_none(sink: str) -> None:
    playbook, problems = check(text(sink, tool=ASKED if "dsn" in sink else "{kind: noop}"))
    assert (playbook and auth_of(playbook), problems) == (None, ())
    assert auth_of(parse(text(sink, top=ARCHIVE))) is None


@pytest.mark.parametrize(
    "sink",
    [
        "{storage: s3, spec: {bucket: b}}",
        "{storage: gcs, spec: {bucket: b}}",
        "{storage: bigquery, table: d.t, spec: {project: p}}",
    ],
)
def test_the_identity_of_the_machine_is_not_used_unsaid_where_there_is_a_credential(
    sink: str,
) -> None:
    playbook, [problem] = check(text(sink, top=ARCHIVE))
    assert (playbook and auth_of(playbook), problem.severity) == (None, Severity.WARNING)
    assert "identity of the machine, not with 'archive'" in problem.message
    assert problem.hint == "add auth: archive, if that is meant"
    two = "credentials: [{name: archive}, {name: other}]\n"
    for quiet in (text(sink), text(sink, top=two), text(sink[:-1] + ", auth: archive}")):
        assert check(quiet)[1] == ()
