"""`streams bench project`: the speed of projectors."""

from __future__ import annotations

import click

from streams.cli.bench_run import BenchCommand, bench_options
from streams.cli.output import say


@click.command()
@bench_options
@click.option(
    "--events",
    type=click.IntRange(min=4000),
    default=80_000,
    show_default=True,
    help="Mirrored events, of 40 executions.",
)
def project(command: BenchCommand, events: int) -> None:
    """Project mirrored events with one process and with two, compared with a plain Faust agent.

    The agent uses the same fold and the same statements, event by event. The checksum of each
    execution is compared with a replay. Kafka and Postgres are used.

    \b
    Examples:
      streams bench project --events 8000
      streams bench project --json
    """
    from streams.dev.bench.project import bench_project

    command.measure(
        lambda settings, folder: bench_project(settings, folder, events=events, say=say)
    )
