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
    told = check("--json", stdin='{"host": "h", "password": "c4nary"}')
    assert told.exit_code == 0
    assert orjson.loads(told.output) == {
        "dry_run": True,
        "name": "pg",
        "kind": "postgres",
        "fields": ["host", "password"],
    }


def test_fields_come_from_a_file(tmp_path: Path):
    file = tmp_path / "dsn"
    file.write_text("postgresql://u:c4nary@h/db\n")
    told = check("--from-file", str(file))
    assert (told.exit_code, "c4nary" in told.output) == (0, False)
    assert "dsn" in told.output


def test_fields_on_the_command_line_are_taken_and_discouraged():
    told = check("--set", "host=h", "--set", "password=c4nary=1")
    assert told.exit_code == 0
    assert "visible to other users" in told.stderr
    assert "c4nary" not in told.output + told.stderr


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
    told = check(*words, stdin=stdin)
    assert told.exit_code != 0
    said = told.output + told.stderr + str(told.exception)
    assert "c4nary" not in said
    assert isinstance(told.exception, (StreamsError, SystemExit))


def test_odd_names_are_refused():
    told = run("set", "../pg", "--type", "postgres", "--dry-run", stdin="postgresql://h/db")
    assert isinstance(told.exception, StreamsError)
    assert "letters, digits" in str(told.exception)


def test_a_new_key_is_for_its_owner_only_and_replaces_none(tmp_path: Path):
    file = tmp_path / "key"
    told = run("new-key", "--out", str(file), "--json")
    assert told.exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_keys(file.read_text(), "it").current.id == orjson.loads(told.output)["key_id"]
    assert file.read_text().strip() not in told.output
    again = run("new-key", "--out", str(file))
    assert isinstance(again.exception, StreamsError)
    assert "exists, and credentials" in str(again.exception)
