"""`streams trigger`, as far as it goes without servers."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from streams.cli import cli
from streams.trigger.reconcile import LedgerGap, ReconcileReport, Side, gaps_of


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_a_dry_run_prints_the_record_and_strings_stay_strings() -> None:
    values = ["--set", "a=1e5", "--set", "b=", "--set", "c=x=y", "--set-json", 'd={"n": [1, null]}']
    found = run("trigger", "examples/hello", *values, "--key", "k", "--dry-run")
    assert found.exit_code == 0
    assert orjson.loads(found.output) == {
        "path": "examples/hello",
        "workload": {"a": "1e5", "b": "", "c": "x=y", "d": {"n": [1, None]}},
        "key": "k",
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "a"], "'a' is not K=V"),
        (["--set", "=1"], "'=1' is not K=V"),
        (["--set", "a=1", "--set-json", "a=2"], "'a' is given twice"),
        (["--set-json", "a={"], "is not JSON"),
        (["--version", "0"], "--version"),
        (["--timeout", "0"], "--timeout"),
    ],
)
def test_a_bad_option_is_named(arguments: list[str], says: str) -> None:
    found = run("trigger", "examples/hello", "--dry-run", *arguments)
    assert found.exit_code == 2
    assert says in found.output


def test_a_file_has_no_version_yet(tmp_path: Path) -> None:
    found = run("trigger", str(tmp_path / "p.yaml"), "--version", "2", "--dry-run")
    assert found.exit_code == 2
    assert "PATH is a file" in found.output


def test_offsets_without_a_row_are_grouped_by_neighbours_and_by_what_the_group_passed() -> None:
    gaps = list(gaps_of(3, [1, 2, 5, 6, 7, 8], committed=7))
    assert gaps == [
        LedgerGap(3, 1, 2, 2, "missing"),
        LedgerGap(3, 5, 6, 2, "missing"),
        LedgerGap(3, 7, 8, 2, "waiting"),
    ]
    assert list(gaps_of(0, [], committed=7)) == []


def test_a_report_is_whole_while_records_only_wait() -> None:
    waiting = Side(0, 0, 5, 3, 3, 0, (LedgerGap(0, 3, 4, 2, "waiting"),))
    assert ReconcileReport("t", "id", (waiting,)).is_whole
    passed = Side(0, 0, 5, 5, 4, 0, (LedgerGap(0, 2, 2, 1, "missing"),))
    lost = Side(0, 0, 5, 5, 5, 2, ())
    dropped = Side(0, 4, 5, 2, 1, 0, ())
    for side in (passed, lost, dropped):
        assert not ReconcileReport("t", "id", (waiting, side)).is_whole
    assert ReconcileReport("t", "id", (dropped,)).expired == 2
