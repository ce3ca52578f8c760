"""`streams bench subscription`: each record of a topic starts one execution, over kills."""

from __future__ import annotations

from pathlib import Path

import click

from streams.cli.bench_run import BenchCommand
from streams.cli.options import COUNT, data_option, json_option
from streams.cli.output import say


@click.command()
@data_option
@json_option
@click.option(
    "--records", type=COUNT, default=20_000, show_default=True, help="Committed Avro records."
)
@click.option(
    "--kills",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How often the trigger role, and Kafka, are killed (SIGKILL).",
)
def subscription(data: Path | None, as_json: bool, records: int, kills: int) -> None:
    """Start an execution for each record of a foreign topic while services are killed.

    The records are Avro, in transactions, of which every fifth is aborted. Needs an embedded
    stack, whose services can be killed; a stack that is started for the bench runs the trigger
    role alone, so that executions are started and not run.

    \b
    Examples:
      streams bench subscription
      streams bench subscription --records 100000 --kills 3 --json
    """
    from streams.dev.bench.subscription import bench_subscription

    BenchCommand(None, data, as_json).measure(
        lambda settings, folder: bench_subscription(
            settings, folder, records=records, kills=kills, say=say
        ),
        roles={"trigger": 1},
    )
