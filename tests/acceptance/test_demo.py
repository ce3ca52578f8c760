"""The demo is a check of its own: it compares every event with the log."""

from pathlib import Path

import pytest

from streams.demo.page import write_page
from streams.demo.tour import run_tour
from streams.settings import Settings

pytestmark = pytest.mark.stack


async def test_the_tour_brings_every_event_back_once_and_writes_a_page(
    settings: Settings, tmp_path: Path
) -> None:
    phases: set[str] = set()
    page = tmp_path / "demo.html"

    tour = await run_tour(
        settings, executions=2, frames=3, progress=lambda phase, _done, _total: phases.add(phase)
    )
    write_page(tour, page)

    assert len(tour.events) == tour.verified == 2 * (1 + 4 + 3 * 3 + 5)
    assert tour.duplicates_ignored == 1
    assert phases == {"appended to the log", "read back from Kafka"}
    assert page.read_text("utf-8").count("playbook.completed") == 2
