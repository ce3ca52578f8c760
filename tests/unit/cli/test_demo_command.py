"""How `streams demo` reports faults; the run itself is in acceptance/."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from streams.cli import demo as module
from streams.cli.demo import demo

OUTPUT = {
    "execution_id": "1",
    "status": "FAILED",
    "requests": 40,
    "expected_rows": 24,
    "saved_rows": 0,
    "missing": 24,
    "doubled": 0,
    "stages": 1,
    "frames": 1,
    "events": 9,
    "checksums_verified": 9,
    "run_s": 1.0,
    "total_s": 2.0,
    "page": "/demo.html",
    "faults": ["rows: 24 rows missing"],
}


@pytest.mark.parametrize(("faults", "code"), [([], 0), (["rows: 24 rows missing"], 1)])
def test_faults_are_printed_and_are_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, faults: list[str], code: int
) -> None:
    async def run(*_: object) -> dict[str, Any]:
        return {**OUTPUT, "faults": faults}

    monkeypatch.setattr(module, "_run", run)
    ended = CliRunner().invoke(demo, [])
    assert ended.exit_code == code
    found = [line for line in ended.output.splitlines() if line.startswith("WRONG")]
    assert found == [f"WRONG  {fault}" for fault in faults]
