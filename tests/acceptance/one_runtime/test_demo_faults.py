"""The demo's run against a server that answers nothing but errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.dev.bench.mock_server import MockWorld
from streams.dev.demo.page import write_page
from streams.dev.demo.progress import StageRows
from streams.dev.demo.run import run_demo
from streams.local.display import choose_display
from tests.support.servers.runtime import Runtime

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]


async def test_a_demo_that_could_not_save_everything_says_so(
    runtime: Runtime, tmp_path: Path
) -> None:
    world = MockWorld(facilities=1, patients=2, error_rate=1)
    with choose_display(as_json=True) as display:
        outcome = await run_demo(runtime.settings, world, StageRows(display))
    assert outcome.end.status == "FAILED"
    assert "rows: 24 rows missing" in outcome.faults
    assert any(fault.startswith("execution: it ended FAILED") for fault in outcome.faults)
    page = tmp_path / "demo.html"
    write_page(outcome, page)
    assert "rows: 24 rows missing" in page.read_text("utf-8")
