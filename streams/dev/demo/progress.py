"""Progress rows of a demo run's stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.progress_bar import ProgressBar
from rich.text import Text

from streams.dev.demo.follow import ExecutionProgress, StageProgress
from streams.local.display import Display, DisplayRow

BAR_WIDTH = 30


class StageRows:
    """Shows the stages of an execution on a display."""

    def __init__(self, display: Display) -> None:
        self.say = display.say
        self._display = display
        self._steps: tuple[str, ...] = ()

    def plan(self, steps: Sequence[str]) -> None:
        """Set the steps that will have a stage."""
        self._steps = tuple(steps)

    def show(self, progress: ExecutionProgress) -> None:
        """Show the current stages."""
        self._display.show(list(stage_rows(self._steps, progress)))


def stage_rows(steps: Sequence[str], progress: ExecutionProgress) -> Iterator[DisplayRow]:
    """Yield a row for each step; one without a stage yet is dim and has no text."""
    by_step = {stage.step: stage for stage in progress.stages}
    for step in dict.fromkeys((*steps, *by_step)):
        stage = by_step.get(step)
        if stage is None:
            yield DisplayRow(f"stage {step}", "", ("", Text(step, style="dim"), _bar(0.0), ""))
        else:
            yield DisplayRow(
                f"stage {step}",
                f"{stage.status.lower()}, {_counts(stage)}",
                (_mark(stage), step, _bar(stage.share), _counts(stage)),
            )


def _counts(stage: StageProgress) -> str:
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
