"""The page the demo ends with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from streams.demo.tour import Tour
from streams.envelope.model import Event


def write_page(tour: Tour, path: Path) -> None:
    """Write what the tour found as one self-contained HTML file."""
    by_root: dict[str, list[Event]] = {}
    for event in tour.events:
        by_root.setdefault(str(event.root), []).append(event)
    template = files("streams.demo").joinpath("page.html").read_text("utf-8")
    page = Environment(autoescape=True).from_string(template)
    path.write_text(page.render(tour=tour, executions=list(by_root.items())), encoding="utf-8")
