"""`streams bench`: measurements next to a baseline from the same run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from streams.cli.bench_lag import lag
from streams.cli.bench_many import many
from streams.cli.bench_project import project
from streams.cli.bench_rate import rate
from streams.cli.bench_replay import replay
from streams.cli.bench_run import BenchCommand, bench_options, rounds_option, workers_option
from streams.cli.bench_subscription import subscription
from streams.cli.bench_tables import tables
from streams.cli.options import COUNT, SECONDS, Command
from streams.cli.output import say

SHARE = click.FloatRange(0, 1)


def _events_option(default: int) -> Callable[[Command], Command]:
    number = click.IntRange(min=400)
    return click.option(
        "--events", type=number, default=default, show_default=True, help="Events per round."
    )


@click.group()
def bench() -> None:
    """Measure this machine, on the running stack or a temporary one.

    \b
    Example:
      streams bench append --json
    """


@bench.command()
@bench_options
@rounds_option(default=3)
@_events_option(default=20_000)
def append(command: BenchCommand, rounds: int, events: int) -> None:
    """Append in batches of 100 compared with raw COPY, and singly compared with fsync.

    \b
    Examples:
      streams bench append
      streams bench append --events 50000 --json
    """
    from streams.dev.bench.append import bench_append

    command.measure(
        lambda settings, folder: bench_append(
            settings, folder, events=events, rounds=rounds, say=say
        )
    )


@bench.command()
@bench_options
@rounds_option(default=3)
@_events_option(default=40_000)
@click.option(
    "--seconds", type=COUNT, default=20, show_default=True, help="How long to measure latency."
)
def mirror(command: BenchCommand, rounds: int, events: int, seconds: int) -> None:
    """Mirror events to Kafka compared with Debezium on a plain table; latency at 500 per second.

    \b
    Examples:
      streams bench mirror
      streams bench mirror --seconds 60 --json
    """
    from streams.dev.bench.mirror import bench_mirror

    command.measure(
        lambda settings, _: bench_mirror(
            settings, events=events, rounds=rounds, seconds=seconds, say=say
        )
    )


@bench.command()
@bench_options
@rounds_option(default=5)
@click.option(
    "--megabytes", type=COUNT, default=64, show_default=True, help="Size of the batch of rows."
)
def ipc(command: BenchCommand, rounds: int, megabytes: int) -> None:
    """Read one batch in another process, from shared memory and from the payload store.

    \b
    Examples:
      streams bench ipc
      streams bench ipc --megabytes 256 --json
    """
    from streams.dev.bench.ipc import bench_ipc

    command.measure(
        lambda settings, _: bench_ipc(settings, megabytes=megabytes, rounds=rounds, say=say)
    )


@bench.command()
@bench_options
@click.option("--facilities", type=COUNT, default=10, show_default=True)
@click.option("--patients", type=COUNT, default=200, show_default=True, help="Per facility.")
@click.option("--rows-per-page", type=COUNT, default=1, show_default=True)
@click.option(
    "--latency-ms",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Response delay of the mock server.",
)
@click.option(
    "--error-rate", type=SHARE, default=0.0, show_default=True, help="Requests answered with 503."
)
@click.option(
    "--timeout-rate", type=SHARE, default=0.0, show_default=True, help="Requests without response."
)
@click.option(
    "--timeout-s", type=SECONDS, default=5.0, show_default=True, help="Timeout of a request."
)
@click.option(
    "--frame-size", type=COUNT, default=50, show_default=True, help="Cursor rows per frame."
)
@workers_option(default=1)
def pft(
    command: BenchCommand, timeout_s: float, frame_size: int, workers: int, **world: Any
) -> None:
    """Fetch patients' records in frames, compared with a plain script and one-row frames.

    \b
    Examples:
      streams bench pft --facilities 2 --patients 50
      streams bench pft --facilities 10 --patients 200 --json
      streams bench pft --error-rate 0.05 --timeout-rate 0.01 --timeout-s 1
    """
    from streams.dev.bench.mock_server import MockWorld
    from streams.dev.bench.pft import PftBench

    command.measure(
        lambda settings, folder: PftBench(settings, folder, timeout_s, say).compare(
            MockWorld(**world), frame_size
        ),
        workers=workers,
    )


@bench.command()
@bench_options
@click.option("--executions", type=COUNT, default=200, show_default=True, help="One at a time.")
def latency(command: BenchCommand, executions: int) -> None:
    """Time one-step playbooks from the trigger record to `playbook.completed` on Kafka.

    \b
    Example:
      streams bench latency --json
    """
    from streams.dev.bench.latency import bench_latency

    command.measure(
        lambda settings, _: bench_latency(settings, executions=executions, say=say), workers=1
    )


bench.add_command(lag)
bench.add_command(many)
bench.add_command(rate)
bench.add_command(project)
bench.add_command(replay)
bench.add_command(subscription)
bench.add_command(tables)


@bench.command()
@bench_options
@click.option("--frames", type=COUNT, default=3000, show_default=True, help="Frames of one row.")
def frames(command: BenchCommand, frames: int) -> None:
    """Run trivial frames with 64 in flight, and report the CPU time of each service.

    \b
    Example:
      streams bench frames --json
    """
    from streams.dev.bench.frames import bench_frames

    command.measure(
        lambda settings, folder: bench_frames(settings, folder, frames=frames, say=say), workers=1
    )


@bench.command()
@bench_options
@click.option(
    "--megabytes", type=COUNT, default=2048, show_default=True, help="Size of the large payload."
)
@click.option("--small", type=COUNT, default=2000, show_default=True, help="Payloads of 2 kB.")
@click.option(
    "--same", type=COUNT, default=1000, show_default=True, help="Puts of the same megabyte."
)
def payload(command: BenchCommand, megabytes: int, small: int, same: int) -> None:
    """Store and fetch large and small payloads, compared with boto3 and a file copy.

    \b
    Examples:
      streams bench payload --megabytes 200
      streams bench payload --json
    """
    from streams.dev.bench.payload import bench_payload

    command.measure(
        lambda settings, folder: bench_payload(
            settings, folder, megabytes=megabytes, small=small, same=same, say=say
        ),
        workers=1,
    )


@bench.command()
@bench_options
@click.option("--minutes", type=SECONDS, default=1.0, show_default=True, help="Duration.")
@click.option("--writers", type=COUNT, default=12, show_default=True)
def collect(command: BenchCommand, minutes: float, writers: int) -> None:
    """Run writers against the payload collector; check that it deletes exactly the orphans.

    Uses its own database and bucket, and a grace of seconds.

    \b
    Examples:
      streams bench collect
      streams bench collect --minutes 10 --json
    """
    from streams.dev.bench.collect import bench_collect

    command.measure(
        lambda settings, _: bench_collect(settings, seconds=60 * minutes, writers=writers, say=say)
    )
