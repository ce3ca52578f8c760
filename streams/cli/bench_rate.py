"""`streams bench rate`: a rate that holds over all workers."""

from __future__ import annotations

import click

from streams.cli.bench_run import BenchCommand, bench_options, workers_option
from streams.cli.options import COUNT
from streams.cli.output import say


@click.command()
@bench_options
@click.option("--per-second", type=COUNT, default=100, show_default=True, help="The rate.")
@click.option("--seconds", type=COUNT, default=60, show_default=True, help="How long to count.")
@click.option("--playbooks", type=COUNT, default=4, show_default=True, help="Run at the same time.")
@workers_option(default=2)
def rate(
    command: BenchCommand, per_second: int, seconds: int, playbooks: int, workers: int
) -> None:
    """Call one host from several playbooks under one rate; count requests in every second.

    \b
    Examples:
      streams bench rate
      streams bench rate --per-second 50 --seconds 20 --json
    """
    from streams.dev.bench.rate import bench_rate

    command.measure(
        lambda settings, _: bench_rate(
            settings, per_second=per_second, seconds=seconds, playbooks=playbooks, say=say
        ),
        workers=workers,
    )
