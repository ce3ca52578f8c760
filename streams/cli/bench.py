"""`streams bench`: figures beside the limit measured in the same run."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from streams.cli.options import COUNT, config_option, data_option, json_option, options

if TYPE_CHECKING:
    from streams.bench.report import Report
    from streams.settings import Settings

_bench_options = options(
    config_option,
    data_option,
    click.option(
        "--rounds", type=COUNT, default=3, show_default=True, help="Rounds; the median is shown."
    ),
    json_option,
)


@click.group()
def bench() -> None:
    """Measure this machine: each bench runs on the stack that is up, or on one of its own.

    \b
    Example:
      streams bench append --json
    """


@bench.command()
@_bench_options
@click.option(
    "--events",
    type=click.IntRange(min=400),
    default=20_000,
    show_default=True,
    help="Events a round.",
)
def append(file: Path | None, data: Path | None, rounds: int, as_json: bool, events: int) -> None:
    """Append in batches of 100 beside a raw COPY, and singly beside fsync.

    \b
    Examples:
      streams bench append
      streams bench append --events 50000 --json
    """
    from streams.bench.append import bench_append

    async def run(settings: Settings, folder: Path) -> Report:
        return await bench_append(settings, folder, events=events, rounds=rounds, say=_say)

    _finish(asyncio.run(_on_a_stack(file, data, run)), as_json)


@bench.command()
@_bench_options
@click.option(
    "--events",
    type=click.IntRange(min=400),
    default=40_000,
    show_default=True,
    help="Events a round.",
)
@click.option(
    "--seconds", type=COUNT, default=20, show_default=True, help="How long to measure latency."
)
def mirror(
    file: Path | None, data: Path | None, rounds: int, as_json: bool, events: int, seconds: int
) -> None:
    """Mirror events to Kafka beside Debezium on a plain table; then latency at 500 a second.

    \b
    Examples:
      streams bench mirror
      streams bench mirror --seconds 60 --json
    """
    from streams.bench.mirror import bench_mirror

    async def run(settings: Settings, _: Path) -> Report:
        return await bench_mirror(settings, events=events, rounds=rounds, seconds=seconds, say=_say)

    _finish(asyncio.run(_on_a_stack(file, data, run)), as_json)


async def _on_a_stack(
    file: Path | None, data: Path | None, run: Callable[[Any, Path], Awaitable[Report]]
) -> Report:
    async with _stack(file, data) as (settings, folder):
        return await run(settings, folder)


@asynccontextmanager
async def _stack(file: Path | None, data: Path | None) -> AsyncIterator[tuple[Settings, Path]]:
    """Use what the configuration or a running stack names; else run a stack for the bench."""
    from streams.app import load_settings
    from streams.local.stack import running
    from streams.local.state import find_stack

    state = find_stack(data)
    if state is not None or file is not None:
        loaded = load_settings(file, data)
        yield loaded.settings, state.data if state else Path(tempfile.gettempdir())
        return
    with tempfile.TemporaryDirectory(prefix="streams-bench-", dir=Path.cwd()) as folder:
        _say("no stack is up: starting one for this bench")
        async with running(Path(folder)):
            yield load_settings(None, Path(folder)).settings, Path(folder)


def _finish(report: Report, as_json: bool) -> None:
    if as_json:
        body = {**report.figures, "faults": list(report.faults)}
        click.echo(orjson.dumps(body).decode())
    else:
        width = max(map(len, report.figures))
        for name, value in report.figures.items():
            click.echo(f"{name:<{width}}  {value:>12,}")
        for fault in report.faults:
            click.echo(f"FAULT: {fault}")
    if report.faults:
        sys.exit(1)


def _say(line: str) -> None:
    click.echo(line, err=True)
