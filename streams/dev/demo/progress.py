"""Showing a run: a live table of its stages on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from streams.dev.demo.follow import ExecutionProgress, StageProgress
from streams.dev.demo.run import DemoProgress

BAR_WIDTH = 30


class Progress(DemoProgress, Protocol):
    """A place for progress that is open for the length of a block."""

    def __enter__(self) -> Progress: ...

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

    def plan(self, steps: Sequence[str]) -> None:
        pass

    def show(self, view: ExecutionProgress) -> None:
        pass

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines(Quiet):
    """A line for each frame count that a stage reaches, with the seconds since the start."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._said: dict[str, str] = {}

    def say(self, text: str) -> None:
        click.echo(f"{time.monotonic() - self._began:6.1f} s  {text}", err=True)

    def show(self, view: ExecutionProgress) -> None:
        for stage in view.stages:
            text = f"{stage.status.lower()}, {told(stage)}"
            if self._said.get(stage.step) != text:
                self._said[stage.step] = text
                self.say(f"stage {stage.step}: {text}")

    def __enter__(self) -> Lines:
        return self


class LiveTable(Quiet):
    """A row for each stage of the playbook, kept up to date in place."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=8, transient=False)
        self._steps: list[str] = []

    def say(self, text: str) -> None:
        self._live.console.print(text, style="dim", highlight=False)

    def plan(self, steps: Sequence[str]) -> None:
        self._steps = list(steps)

    def show(self, view: ExecutionProgress) -> None:
        self._live.update(stage_table(self._steps, view))

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def stage_table(steps: Sequence[str], view: ExecutionProgress) -> Table:
    """Return a row for each step: those that have no stage yet are shown as waiting."""
    table = Table.grid(padding=(0, 2))
    by_step = {stage.step: stage for stage in view.stages}
    for step in dict.fromkeys((*steps, *by_step)):
        stage = by_step.get(step)
        if stage is None:
            table.add_row("", Text(step, style="dim"), _bar(0.0), "")
        else:
            table.add_row(_mark(stage), step, _bar(stage.share), told(stage))
    return table


def told(stage: StageProgress) -> str:
    """Say how far a stage is."""
    rows = f"{stage.rows_done:,} rows"
    if stage.rows_failed:
        rows += f", {stage.rows_failed:,} failed"
    return f"{stage.frames_done} of {stage.frames} frames, {rows}"


def _mark(stage: StageProgress) -> Text:
    if stage.ended_at is None:
        return Text("▸", style="cyan")
    return Text("✗", style="red") if stage.rows_failed else Text("✓", style="green")


def _bar(share: float) -> ProgressBar:
    return ProgressBar(
        total=1.0,
        completed=share,
        width=BAR_WIDTH,
        style="bright_black",
        complete_style="cyan",
        finished_style="green",
    )


def choose_progress(*, as_json: bool, began: float) -> Progress:
    """Pick what fits where the output goes; `began` is when the demo did, by monotonic time."""
    if as_json:
        return Quiet()
    return LiveTable() if Console(stderr=True).is_terminal else Lines(began)
