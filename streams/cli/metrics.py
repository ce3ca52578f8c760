"""`streams metrics`: the metrics of the running roles."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path

import click

from streams.cli.options import data_option, json_option
from streams.cli.output import print_json


@click.command()
@click.argument("role", required=False)
@data_option
@json_option
def metrics(role: str | None, data: Path | None, as_json: bool) -> None:
    """Print the metrics of the stack's running roles, as Prometheus scrapes them.

    ROLE: a role such as worker, or one process such as worker-0  [default: all].
    docs/metrics.md lists them.

    \b
    Examples:
      streams metrics
      streams metrics planner
      streams metrics worker-0 --json
    """
    from streams.local.role_metrics import scrape

    pages = asyncio.run(scrape(data, role))
    if as_json:
        processes = [
            {
                "process": page.process,
                "url": page.url,
                "metrics": [asdict(one) for one in page.values()],
            }
            for page in pages
        ]
        print_json({"processes": processes})
        return
    for page in pages:
        click.echo(f"# {page.process} {page.url}")
        click.echo(page.text)
