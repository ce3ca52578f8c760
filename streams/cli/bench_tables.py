"""`streams bench tables`: tables and deliveries, compared with stock Faust."""

from __future__ import annotations

import click

from streams.cli.bench_run import BenchCommand, bench_options
from streams.cli.output import say


@click.command()
@bench_options
@click.option(
    "--keys",
    type=click.IntRange(min=1000),
    default=1_000_000,
    show_default=True,
    help="Keys of the table; the numbers of records are in proportion.",
)
def tables(command: BenchCommand, keys: int) -> None:
    """Write, read, rebuild and take over a table with a changelog, compared with stock Faust.

    Also counts records into a table whose process is killed, and checks the counts. Only Kafka
    is used.

    \b
    Examples:
      streams bench tables --keys 20000
      streams bench tables --json
    """
    from streams.dev.bench.tables import bench_tables

    command.measure(lambda settings, folder: bench_tables(settings, folder, keys=keys, say=say))
