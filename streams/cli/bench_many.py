"""`streams bench many`: one planner with many open executions."""

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
    "--executions", type=COUNT, default=100_000, show_default=True, help="Open executions."
)
def many(data: Path | None, as_json: bool, executions: int) -> None:
    """Measure one planner with many executions that wait: memory, latency, restarts.

    Each waits for a worker of a pool that has none. The planner is killed (SIGKILL) twice, and
    its tables are deleted the second time. Needs an embedded stack; on one that is up, the
    executions are cancelled at the end.

    \b
    Examples:
      streams bench many
      streams bench many --executions 10000 --json
    """
    from streams.dev.bench.many import ManyBench
    from streams.local.state import find_stack

    cancel = find_stack(data) is not None
    BenchCommand(None, data, as_json).measure(
        lambda settings, folder: ManyBench(settings, folder, cancel=cancel, say=say).measure(
            executions
        ),
        workers=1,
    )
