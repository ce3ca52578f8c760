"""Execution of a bench on a stack, and output of its report."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from streams.cli.output import print_json, say, settings_of

if TYPE_CHECKING:
    from streams.dev.bench.report import BenchReport, Figure
    from streams.settings import Settings

    Bench: TypeAlias = Callable[[Settings, Path], Awaitable[BenchReport]]


def measure(
    bench: Bench, file: Path | None, data: Path | None, as_json: bool, *, workers: int = 0
) -> None:
    """Run a bench and print its report; exit 1 if the report has faults.

    `workers` is the number of worker processes of a stack that is started for the bench;
    with 0 it has no roles at all.
    """

    async def run() -> BenchReport:
        async with _stack(file, data, workers) as (settings, folder):
            return await bench(settings, folder)

    print_report(asyncio.run(run()), as_json)


@asynccontextmanager
async def _stack(
    file: Path | None, data: Path | None, workers: int
) -> AsyncIterator[tuple[Settings, Path]]:
    """Use the servers of the given file, else the stack that is up, else a new one.

    A streams.yaml in the current folder is not used: its servers may be in production.
    """
    from streams.local.stack import running
    from streams.local.state import find_stack

    state = find_stack(data)
    if file is not None:
        folder = state.data if state else Path(tempfile.gettempdir())
        yield settings_of(file, data), folder
        return
    if state is not None:
        yield settings_of(None, state.data), state.data
        return
    with tempfile.TemporaryDirectory(prefix="streams-bench-", dir=Path.cwd()) as temporary:
        say("no stack is up: starting one for this bench")
        async with running(Path(temporary), roles=_roles(workers)):
            yield settings_of(None, Path(temporary)), Path(temporary)


def _roles(workers: int) -> dict[str, int]:
    from streams.roles.start import existing_roles

    if not workers:
        return {}
    return {role: workers if role == "worker" else 1 for role in existing_roles()}


def print_report(report: BenchReport, as_json: bool) -> None:
    if as_json:
        body = {**report.figures, "faults": list(report.faults)}
        print_json(body)
    else:
        lines = dict(_lines(report.figures))
        width = max(map(len, lines))
        for name, value in lines.items():
            click.echo(f"{name:<{width}}  {value:>12}")
        for fault in report.faults:
            click.echo(f"FAULT: {fault}")
    if report.faults:
        sys.exit(1)


def _lines(figures: Mapping[str, Figure], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield a name and a value for each figure, nested ones with their names joined."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{before}{name}: ")
        else:
            yield before + name, value if isinstance(value, str) else f"{value:,}"
