"""Execution of a bench on a stack, and output of its report."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from streams.cli.options import COUNT, Command, settings_options
from streams.cli.output import print_json, say, settings_of

if TYPE_CHECKING:
    from streams.dev.bench.report import BenchReport, Figure
    from streams.settings import Settings

    Bench: TypeAlias = Callable[[Settings, Path], Awaitable[BenchReport]]


@dataclass(frozen=True, slots=True)
class BenchCommand:
    """The options of every bench: its stack, and the format of its report."""

    file: Path | None
    data: Path | None
    as_json: bool

    def measure(
        self, bench: Bench, *, workers: int = 0, roles: Mapping[str, int] | None = None
    ) -> None:
        """Run a bench and print its report; exit 1 if the report has faults.

        `workers` is the number of worker processes of a stack that is started for the bench;
        with 0 it has no roles at all. `roles` are its processes, if it has only some roles.
        """
        wanted = _roles(workers) if roles is None else roles

        async def run() -> BenchReport:
            async with _stack(self.file, self.data, wanted) as (settings, folder):
                return await bench(settings, folder)

        print_report(asyncio.run(run()), self.as_json)


def bench_options(command: Command) -> Command:
    """Add the options of every bench; the command receives them as a `BenchCommand`."""

    @settings_options
    @wraps(command)
    def called(file: Path | None, data: Path | None, as_json: bool, **own: Any) -> None:
        command(BenchCommand(file, data, as_json), **own)

    return called


def rounds_option(default: int) -> Callable[[Command], Command]:
    """Return the option `--rounds`."""
    help_text = "Rounds; the median is shown."
    return click.option("--rounds", type=COUNT, default=default, show_default=True, help=help_text)


def workers_option(default: int) -> Callable[[Command], Command]:
    """Return the option `--workers`."""
    help_text = "Worker processes, if the bench starts a stack."
    return click.option("--workers", type=COUNT, default=default, show_default=True, help=help_text)


@asynccontextmanager
async def _stack(
    file: Path | None, data: Path | None, roles: Mapping[str, int]
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
        async with running(Path(temporary), roles=roles):
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
