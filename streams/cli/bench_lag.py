"""`streams bench lag`: lag figures compared with the broker's, with clocks and with a probe."""

from __future__ import annotations

import click

from streams.cli.bench_run import BenchCommand, bench_options
from streams.cli.output import say


@click.command()
@bench_options
@click.option(
    "--records",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Records of the load that is paused.",
)
def lag(command: BenchCommand, records: int) -> None:
    """Compare lag in messages, in seconds and by hop with the broker, the clock and a probe.

    Stops the mirror for a few seconds, and cancels the execution that it starts.

    \b
    Examples:
      streams bench lag
      streams bench lag --records 100000 --json
    """
    from streams.dev.bench.lag import bench_lag

    command.measure(lambda settings, _: bench_lag(settings, records=records, say=say), workers=1)
