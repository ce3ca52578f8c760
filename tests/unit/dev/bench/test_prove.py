"""A claim holds only when it was measured and every bar is met."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from streams.cli.bench_run import print_report
from streams.cli.prove import prove as command
from streams.dev.bench.claim_measures import pytest_counts
from streams.dev.bench.claims import CLAIMS
from streams.dev.bench.kafka_receiver import Received
from streams.dev.bench.mirror import _tally
from streams.dev.bench.prove import MeasuredClaim, Proof, Threshold, page, prove
from streams.dev.bench.report import BenchReport, middle, percentile


def claim(*bars: Threshold, **figures: float) -> MeasuredClaim:
    return MeasuredClaim("it is fast", "by looking", lambda: figures, bars)


def test_a_bar_may_be_a_least_or_a_most() -> None:
    assert Threshold("x", 3).holds({"x": 3})
    assert not Threshold("x", 3).holds({"x": 2.9})
    assert Threshold("x", 3, at_most=True).holds({"x": 3})
    assert not Threshold("x", 3, at_most=True).holds({"x": 3.1})


def test_a_figure_that_is_missing_holds_no_bar() -> None:
    assert not Threshold("x", 0).holds({})
    assert not Threshold("x", 9, at_most=True).holds({})


def test_what_cannot_be_measured_does_not_hold() -> None:
    def broken() -> dict[str, float]:
        raise ValueError("faults: 3 gaps in seq")

    [proof] = prove((MeasuredClaim("it works", "by trying", broken),), lambda _: None)

    assert not proof.holds
    assert "Not measured: faults: 3 gaps in seq" in page([proof], at=datetime.now(UTC))


def test_the_page_says_which_bar_is_not_met() -> None:
    proofs = list(prove((claim(Threshold("a", 1), Threshold("b", 5), a=2, b=4),), lambda _: None))

    text = page(proofs, at=datetime(2026, 5, 16, tzinfo=UTC))

    assert "Measured 2026-05-16" in text
    assert "- `a` at least 1: holds" in text
    assert "- `b` at least 5: **does not hold**" in text
    assert not proofs[0].holds


@pytest.mark.parametrize(
    ("line", "failed", "skipped"),
    [
        ("4 passed in 3.10s", 0, 0),
        ("4 passed, 1 error in 3.10s", 1, 0),
        ("1 failed, 3 passed, 2 errors in 3.10s", 3, 0),
        ("3 passed, 1 skipped in 3.10s", 0, 1),
    ],
)
def test_errors_and_skips_of_pytest_count(line: str, failed: int, skipped: int) -> None:
    counts = pytest_counts(f"....\n{line}\n")

    assert (counts["failed"], counts["skipped"]) == (failed, skipped)


def test_a_claim_that_is_not_there_is_refused() -> None:
    result = CliRunner().invoke(command, ["--only", "moon"])

    assert result.exit_code == 2
    assert CLAIMS[0].name in result.output


def test_a_bench_with_faults_exits_non_zero_and_prints_one_json_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        print_report(BenchReport({"x": 1}, ("2 events lost",)), as_json=True)

    assert capsys.readouterr().out == '{"x":1,"faults":["2 events lost"]}\n'


def test_the_median_of_rounds_is_taken_figure_by_figure() -> None:
    rounds = [{"a": 1.0, "b": 9.0}, {"a": 3.0, "b": 7.0}, {"a": 2.0, "b": 8.0}]

    assert middle(rounds) == {"a": 2.0, "b": 8.0}


def test_lost_and_doubled_are_counted_against_what_was_sent() -> None:
    got = [Received(name, 0.0, 0.0) for name in ("1", "2", "2", "stranger")]

    assert _tally(["1", "2", "3"], got) == (1, 1)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([1.0, 2.0, 3.0, 100.0], 50) == 3.0
    assert percentile([1.0, 2.0, 3.0, 100.0], 99) == 100.0
    assert Proof(claim()).holds
