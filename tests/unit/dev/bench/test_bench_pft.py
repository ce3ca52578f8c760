"""The PFT bench asks for what it says, and reckons its figures honestly."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

from streams.cli.bench_run import _lines
from streams.dev.bench.claim_measures import figures_of
from streams.dev.bench.executions import ExecutionEnd
from streams.dev.bench.log_counts import Counts
from streams.dev.bench.mock_server import MockWorld
from streams.dev.bench.pft import PftRun, _figures, vary
from streams.dev.bench.resource_usage import ResourceUsage, cpu_s, memory_mb
from streams.dev.bench.row_check import RowCheck
from streams.playbook.model import FramePolicy
from streams.playbook.parse import check, parse
from streams.resources import folder

PLAYBOOK = (folder("examples") / "pft" / "playbook.yaml").read_text("utf-8")


def run(*, saved: int, wall_s: float, **counts: int) -> PftRun:
    zeros = dict.fromkeys(Counts.__slots__, 0)
    return PftRun(
        ExecutionEnd(1, "COMPLETED", None, wall_s),
        Counts(**{**zeros, **counts}),
        RowCheck(expected=saved, saved=saved),
        saved,
        ResourceUsage(Path("nowhere")),
        {},
    )


@pytest.mark.parametrize("name", ["pft/playbook.yaml", "hello.yaml"])
def test_an_example_has_no_problem(name: str) -> None:
    playbook, problems = check((folder("examples") / name).read_text("utf-8"))

    assert problems == ()
    assert playbook is not None


def test_the_workload_has_six_cursor_loops_whose_saves_can_be_batched() -> None:
    loops = [step for step in parse(PLAYBOOK).steps.values() if step.loop is not None]

    assert [step.loop.cursor.form for step in loops if step.loop and step.loop.cursor] == [
        "keyset"
    ] * 6
    assert [
        task.deferrable for step in loops for task in step.tasks if task.kind == "postgres"
    ] == [True] * 6


def test_a_varied_playbook_differs_in_path_and_frame_size_only() -> None:
    varied = vary(PLAYBOOK, path="bench/other", frame_size=7)
    by_row = vary(PLAYBOOK, path="bench/row", frame_size=None)
    sizes = [step.loop.policy for step in parse(varied).steps.values() if step.loop]

    assert [policy.size for policy in sizes if isinstance(policy, FramePolicy)] == [7] * 6
    assert [step.loop.policy for step in parse(by_row).steps.values() if step.loop] == [None] * 6
    assert parse(varied).path == "bench/other"
    assert yaml.safe_load(vary(varied, path="examples/pft", frame_size=50)) == yaml.safe_load(
        PLAYBOOK
    )


def test_frames_of_one_row_are_scaled_by_cursor_rows_and_the_rest_is_not() -> None:
    framed = run(
        saved=1000, wall_s=2.0, events=340, frame_events=300, frames=100, claims=100,
        cursor_rows=5000,
    )  # fmt: skip
    by_row = run(
        saved=100, wall_s=1.0, events=1540, frame_events=1500, frames=500, claims=500,
        cursor_rows=500,
    )  # fmt: skip

    figures = _figures(framed, by_row, plain_rows_per_s=1000.0, same_client_rows_per_s=2000.0)

    assert figures["claims_ratio_to_frame_size_1"] == 0.02
    assert figures["events_ratio_to_frame_size_1"] == round(340 / (40 + 15_000), 4)
    assert figures["rows_per_s"] == 500.0
    assert figures["ratio_to_plain"] == 0.5
    assert figures["ratio_to_plain_same_client"] == 0.25
    assert figures["rows_per_frame"] == 50.0
    assert figures["events_per_frame"] == 3.4


def test_a_run_that_did_not_complete_is_a_fault() -> None:
    failed = PftRun(
        ExecutionEnd(1, "FAILED", "no such host", 1.0),
        run(saved=1, wall_s=1.0).counts,
        RowCheck(expected=2, saved=1, missing=1),
        1,
        ResourceUsage(Path("nowhere")),
        {},
    )

    assert failed.faults("playbook") == [
        "playbook: 1 rows missing",
        "playbook: the execution ended FAILED: no such host",
    ]


def test_the_server_is_told_every_number() -> None:
    options = MockWorld(facilities=2, patients=3, error_rate=0.5).options()

    assert options[:4] == ["--facilities", "2", "--patients", "3"]
    assert options[options.index("--error-rate") + 1] == "0.5"


def test_figures_by_process_are_told_one_a_line() -> None:
    assert dict(_lines({"rows": 1234, "peak": {"worker": 1.5}, "status": "COMPLETED"})) == {
        "rows": "1,234",
        "peak: worker": "1.5",
        "status": "COMPLETED",
    }


def test_a_claim_is_judged_by_numbers_those_by_process_included() -> None:
    answer = {"rows": 2, "status": "COMPLETED", "peak": {"worker": 1.5}, "faults": []}

    assert figures_of(answer) == {"rows": 2, "peak worker": 1.5}


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_process_has_memory_and_used_time_and_a_dead_one_has_none() -> None:
    assert memory_mb(os.getpid()) > 10
    assert cpu_s(os.getpid()) > 0
    assert memory_mb(2**30) == cpu_s(2**30) == 0
