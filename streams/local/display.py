"""Showing a start: a live table on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from streams.local.service import ServiceReport, ServiceState


class Display(Protocol):
    """Where the progress of a start goes."""

    def say(self, text: str) -> None:
        """Show a line about the stack as a whole."""
        ...

    def report(self, report: ServiceReport) -> None:
        """Show a change of one service."""
        ...

    def __enter__(self) -> Display: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Quiet:
    """Shows nothing, since standard output belongs to one JSON object."""

    def say(self, text: str) -> None:
        pass

    def report(self, report: ServiceReport) -> None:
        pass

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines:
    """One plain line per change, each with the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        click.echo(f"{time.monotonic() - self._began:6.1f} s  {text}", err=True)

    def report(self, report: ServiceReport) -> None:
        if report.state is not ServiceState.WAITING:
            detail = f" ({report.detail})" if report.detail else ""
            self.say(f"{report.service}: {report.state}{detail}")

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class LiveTable:
    """A row per service, kept up to date in place."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=False)
        self._last: dict[str, ServiceReport] = {}

    def say(self, text: str) -> None:
        self._live.console.print(text, style="dim")

    def report(self, report: ServiceReport) -> None:
        self._last[report.service] = report
        self._live.update(self._table())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, report in self._last.items():
            busy = report.state not in (
                ServiceState.READY,
                ServiceState.STOPPED,
                ServiceState.FAILED,
            )
            mark = Spinner("dots") if busy else Text("✗" if report.state == "failed" else "✓")
            table.add_row(mark, name, str(report.state), report.detail)
        return table

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def choose_display(*, as_json: bool) -> Display:
    """Pick what fits where the output goes."""
    if as_json:
        return Quiet()
    return LiveTable() if Console(stderr=True).is_terminal else Lines()
