"""The progress of a start, without servers."""

from __future__ import annotations

import pytest
from rich.console import Console

from streams.local.display import DisplayRow, Lines, Quiet, table
from streams.local.service import ServiceReport, ServiceState
from streams.local.service_rows import ServiceRows

REPORTS = (
    ServiceReport("kafka", ServiceState.WAITING),
    ServiceReport("kafka", ServiceState.STARTING),
    ServiceReport("s3", ServiceState.FAILED, detail="exit code 1"),
    ServiceReport("kafka", ServiceState.READY),
)


class Recorded(Quiet):
    """Remembers the rows shown last."""

    rows: list[DisplayRow]

    def show(self, rows: object) -> None:
        assert isinstance(rows, list)
        self.rows = rows


def test_each_change_of_a_service_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ServiceRows(Lines())
    for report in REPORTS:
        rows.report(report)

    printed = [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert printed == ["kafka: starting", "s3: failed (exit code 1)", "kafka: ready"]


def test_the_table_has_one_row_for_each_service() -> None:
    recorded, console = Recorded(), Console(width=80, color_system=None)
    rows = ServiceRows(recorded)
    for report in REPORTS:
        rows.report(report)

    with console.capture() as captured:
        console.print(table(recorded.rows))

    kafka, s3 = captured.get().splitlines()
    assert kafka.split() == ["✓", "kafka", "ready"]
    assert s3.split() == ["✗", "s3", "failed", "exit", "code", "1"]
