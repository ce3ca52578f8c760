"""A pool needs workers of its own: `check` reports it, the command line starts them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streams.cli import cli
from streams.cli.stack import _parse_workers, up
from streams.data_folder import layout_of
from streams.local.roles import pool_workers, role_services
from streams.playbook.parse import check
from streams.playbook.problem import Severity
from streams.settings import BadSettings, load

TEXT = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{path: p/q, pool: {}}}\n"
TEXT += "workflow:\n  - {{step: start, tool: {{kind: noop}}, pool: {}}}\n"


def workers(*given: str) -> dict[str, int]:
    return _parse_workers(click.Context(up), up.params[0], given)


def test_a_pool_other_than_default_is_noted_with_the_command_that_serves_it() -> None:
    made, (problem,) = check(TEXT.format("default", "gpu"))
    assert made is not None
    assert made.steps["start"].pool == "gpu"
    assert (problem.severity, problem.where) == (Severity.NOTE, "workflow[0].pool")
    assert "streams run worker --pool gpu" in str(problem)


@pytest.mark.parametrize("name", ["planner", "a b", "x/y"])
def test_a_pool_that_no_worker_can_read_is_refused(name: str) -> None:
    made, problems = check(TEXT.format(f"'{name}'", "default"))
    assert made is None
    assert [problem.where for problem in problems] == ["metadata.pool"]


def test_a_registered_playbook_with_such_a_pool_still_compiles() -> None:
    made, _ = check(TEXT.format("planner", "default"), clients=False)
    assert made is not None


def test_workers_are_counted_by_pool() -> None:
    assert workers() == {"default": 1}
    assert workers("3") == {"default": 3}
    assert workers("gpu=2", "4") == {"default": 4, "gpu": 2}


@pytest.mark.parametrize("text", ["0", "gpu=", "gpu=x", "a b=1", "=2"])
def test_workers_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not N or POOL=N"):
        workers(text)


def test_each_worker_of_a_pool_is_a_process_with_its_own_name(tmp_path: Path) -> None:
    parts = role_services(layout_of(tmp_path), {"worker": 1, pool_workers("gpu"): 2})
    assert [part.name for part in parts] == ["worker-0", "worker-gpu-0", "worker-gpu-1"]
    assert "--pool" not in parts[0].command
    assert parts[1].command[-4:] == ("--pool", "gpu", "--data", str(tmp_path))


def test_only_a_worker_has_a_pool() -> None:
    answer = CliRunner().invoke(cli, ["run", "planner", "--pool", "gpu"])
    assert answer.exit_code == 2
    assert "only a worker has a pool" in answer.output


def test_the_pool_is_a_setting_too() -> None:
    assert load(env={"STREAMS__RUNTIME__POOL": "gpu"}).settings.runtime.pool == "gpu"
    with pytest.raises(BadSettings, match=r"runtime\.pool"):
        load(env={"STREAMS__RUNTIME__POOL": "a b"})
