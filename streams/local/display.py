"""Progress displays: a live table on a terminal, plain lines elsewhere, nothing with --json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table


@dataclass(frozen=True, slots=True)
class DisplayRow:
    """One row of progress: cells of the live table, or `text` as a plain line.

    A row without text appears in the table only.
    """

    name: str
    text: str
    cells: tuple[RenderableType, ...]


class Display(Protocol):
    """Output of progress during a block."""

    def say(self, text: str) -> None:
        """Print one line."""
        ...

    def show(self, rows: Sequence[DisplayRow]) -> None:
        """Replace the displayed rows."""
        ...

    def __enter__(self) -> Display: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Quiet:
    """Prints nothing: standard output is reserved for one JSON object."""

    def say(self, text: str) -> None:
        pass

    def show(self, rows: Sequence[DisplayRow]) -> None:
        pass

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines(Quiet):
    """Prints a line for each row that changed, with the seconds since `began`."""

    def __init__(self, began: float | None = None) -> None:
        self._began = time.monotonic() if began is None else began
        self._printed: dict[str, str] = {}

    def say(self, text: str) -> None:
        click.echo(f"{time.monotonic() - self._began:6.1f} s  {text}", err=True)

    def show(self, rows: Sequence[DisplayRow]) -> None:
        for row in rows:
            if row.text and self._printed.get(row.name) != row.text:
                self._printed[row.name] = row.text
                self.say(f"{row.name}: {row.text}")


class LiveTable(Quiet):
    """Updates a table in place."""

    def __init__(self) -> None:
        self._live = Live(console=Console(stderr=True), refresh_per_second=8, transient=False)

    def say(self, text: str) -> None:
        self._live.console.print(text, style="dim", highlight=False)

    def show(self, rows: Sequence[DisplayRow]) -> None:
        self._live.update(table(rows))

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def table(rows: Sequence[DisplayRow]) -> Table:
    """Return the rows as a table without borders."""
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row.cells)
    return grid


def choose_display(*, as_json: bool, began: float | None = None) -> Display:
    """Return the display that fits the output; `began` is a monotonic time, by default now."""
    if as_json:
        return Quiet()
    return LiveTable() if Console(stderr=True).is_terminal else Lines(began)
