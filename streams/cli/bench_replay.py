"""`streams bench replay`: the speed of replay by the length of the log."""

from __future__ import annotations

from pathlib import Path

import click

from streams.cli.bench_run import BenchCommand, bench_options
from streams.cli.output import say

LENGTHS = "1000,10000,100000,1000000"


def _lengths(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        lengths = tuple(int(one) for one in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 1000,10000") from None
    if min(lengths) < 100:
        raise click.BadParameter("the least length is 100 events")
    return lengths


@click.command()
@bench_options
@click.option(
    "--lengths",
    callback=_lengths,
    default=LENGTHS,
    show_default=True,
    help="Events of each execution.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Write the times as SVG here."
)
def replay(command: BenchCommand, lengths: tuple[int, ...], plot: Path | None) -> None:
    """Replay executions of several lengths, in full and from snapshots, each in a process.

    Every checksum and every link of the chain is verified. Only Postgres is used.

    \b
    Examples:
      streams bench replay --lengths 1000,20000
      streams bench replay --plot docs/replay-times.svg --json
    """
    from streams.dev.bench.replay import bench_replay

    command.measure(lambda settings, _: bench_replay(settings, lengths=lengths, plot=plot, say=say))
