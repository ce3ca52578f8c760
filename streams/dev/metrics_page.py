"""The table of docs/metrics.md, generated from the declared metrics.

`python -m streams.dev.metrics_page` rewrites the part of the page between its two markers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from streams.metrics.declared import METRICS
from streams.metrics.metric import Metric
from streams.metrics.roles import ROLES

METRICS_BEGIN, METRICS_END = "<!-- metrics: begin -->", "<!-- metrics: end -->"


def metrics_table() -> str:
    """Return the table of all metrics, between the markers."""
    return "\n".join([METRICS_BEGIN, "", *_rows(), "", METRICS_END])


def insert_metrics(page: str, table: str) -> str:
    """Return `page` with its table replaced."""
    before, _, rest = page.partition(METRICS_BEGIN)
    return f"{before}{table}{rest.partition(METRICS_END)[2]}"


def _rows() -> Iterator[str]:
    yield "| metric | kind | labels | roles | meaning |"
    yield "|---|---|---|---|---|"
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        cells = (f"`{metric.name}`", metric.kind, labels, _roles(metric), metric.help)
        yield f"| {' | '.join(cells)} |"


def _roles(metric: Metric) -> str:
    return "all" if set(metric.roles) == set(ROLES) else ", ".join(metric.roles)


def main() -> None:
    """Rewrite the table in docs/metrics.md of this checkout."""
    page = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
    page.write_text(insert_metrics(page.read_text("utf-8"), metrics_table()), "utf-8")


if __name__ == "__main__":
    main()
