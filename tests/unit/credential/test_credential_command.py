"""`streams credential` as a user meets it: where fields come from, and what it never says."""

from __future__ import annotations

import stat
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.credential.keys import read_keys
from streams.errors import StreamsError


def run(*words: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, ["credential", *words], input=stdin)


def check(*words: str, stdin: str | bytes = "") -> Result:
    return run("set", "pg", "--type", "postgres", "--dry-run", *words, stdin=stdin)


def test_fields_come_from_standard_input():
    ran = check("--json", stdin='{"host": "h", "password": "c4nary"}')
    assert ran.exit_code == 0
    assert orjson.loads(ran.output) == {
        "dry_run": True,
        "name": "pg",
        "kind": "postgres",
        "fields": ["host", "password"],
    }


def test_fields_come_from_a_file(tmp_path: Path):
    file = tmp_path / "dsn"
    file.write_text("postgresql://u:c4nary@h/db\n")
    ran = check("--from-file", str(file))
    assert (ran.exit_code, "c4nary" in ran.output) == (0, False)
    assert "dsn" in ran.output


def test_fields_on_the_command_line_are_taken_and_discouraged():
    ran = check("--set", "host=h", "--set", "password=c4nary=1")
    assert ran.exit_code == 0
    assert "visible to other users" in ran.stderr
    assert "c4nary" not in ran.output + ran.stderr


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        ((), ""),
        ((), '{"dsn": c4nary}'),
        ((), '{"dsn": {"deep": "c4nary"}}'),
        ((), "c4nary\nc4nary"),
        ((), b"c4nary\xff"),
        (("--set", "c4nary"), ""),
        (("--set", "p=c4nary\udcff\udcfe"), ""),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence_without_quoting_it(words, stdin):
    ran = check(*words, stdin=stdin)
    assert ran.exit_code != 0
    said = ran.output + ran.stderr + str(ran.exception)
    assert "c4nary" not in said
    assert isinstance(ran.exception, (StreamsError, SystemExit))


def test_odd_names_are_refused():
    ran = run("set", "../pg", "--type", "postgres", "--dry-run", stdin="postgresql://h/db")
    assert isinstance(ran.exception, StreamsError)
    assert "letters, digits" in str(ran.exception)


def test_a_new_key_is_for_its_owner_only_and_replaces_none(tmp_path: Path):
    file = tmp_path / "key"
    ran = run("new-key", "--out", str(file), "--json")
    assert ran.exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_keys(file.read_text(), "it").current.id == orjson.loads(ran.output)["key_id"]
    assert file.read_text().strip() not in ran.output
    again = run("new-key", "--out", str(file))
    assert isinstance(again.exception, StreamsError)
    assert "exists, and credentials" in str(again.exception)
