"""The demo's HTML page, rendered from the events of the run."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from streams.dev.demo.run import DemoOutcome
from streams.dev.demo.timeline import lanes


def write_page(outcome: DemoOutcome, path: Path) -> None:
    """Write the run as one self-contained HTML file."""
    events = outcome.mirrored.events
    whole_s = (events[-1].ingest_time - events[0].ingest_time).total_seconds()
    template = files("streams.dev.demo").joinpath("page.html").read_text("utf-8")
    page = Environment(autoescape=True).from_string(template)
    shown = page.render(
        outcome=outcome,
        figures=outcome.figures(),
        judgement=outcome.judgement,
        events=events,
        lanes=lanes(events),
        whole_s=max(whole_s, 0.001),
    )
    path.write_text(shown, encoding="utf-8")
