"""Following an execution and showing it, without servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from streams.api.port import Head, Row
from streams.dev.demo.follow import ExecutionProgress, NoProgress, StageProgress, follow
from streams.dev.demo.progress import StageRows, stage_rows
from streams.events.model import Root
from streams.local.display import Lines, table
from streams.payload.port import Scope

AT = datetime(2026, 5, 16, tzinfo=UTC)
SCOPE = Scope("acme", "care")
STAGE: dict[str, Any] = {
    "step_name": "load",
    "status": "OPEN",
    "frames": 4,
    "frames_done": 1,
    "rows_done": 50,
    "rows_failed": 0,
    "total_rows": 200,
    "started_at": AT,
    "ended_at": None,
}


class Script:
    """Projections that come along one look at a time; the last look stays."""

    def __init__(self, *looks: tuple[int, bool, int]) -> None:
        self._looks: Iterator[tuple[int, bool, int]] = iter(looks)

    async def head(self, root: Root) -> Head | None:
        self._now = next(self._looks, None) or self._now
        return Head(SCOPE, self._now[0], self._now[1])

    async def execution(self, execution_id: int) -> Row | None:
        seq = self._now[2]
        status = "COMPLETED" if self._now[1] else "RUNNING"
        return {"status": status, "error": None, "last_seq": seq} if seq else None

    async def parts(self, execution_id: int) -> Mapping[str, Any]:
        return {"stages": [STAGE], "commands": []}


async def test_it_waits_until_the_projection_has_seen_the_end() -> None:
    shown: list[ExecutionProgress] = []

    end = await follow(Script((1, False, 0), (9, True, 5), (9, True, 9)), 7, shown.append)

    assert [view.last_seq for view in shown] == [0, 5, 9]
    assert (end.status, end.stages[0].step, end.stages[0].share) == ("COMPLETED", "load", 0.25)


async def test_an_execution_that_stands_still_is_given_up() -> None:
    with pytest.raises(NoProgress, match=r"execution 7 .* after its event 3"):
        await follow(Script((3, False, 3)), 7, lambda _: None, stalled_s=0.1)


def stage(**changes: Any) -> StageProgress:
    row = {name: value for name, value in STAGE.items() if name != "step_name"}
    return StageProgress(**{"step": "load", **row, **changes})


def test_a_line_is_said_once_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    rows = StageRows(Lines(began=0.0))
    for done in (0, 0, 1):
        rows.show(
            ExecutionProgress("RUNNING", None, 1, (stage(frames_done=done, rows_done=50 * done),))
        )

    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("stage load: open, 0 of 4 frames, 0 rows")
    assert second.endswith("stage load: open, 1 of 4 frames, 50 rows")


def test_the_table_shows_what_waits_what_runs_and_what_failed() -> None:
    console = Console(width=100, color_system=None)
    ended = stage(step="tell", status="CLOSED", rows_failed=2, ended_at=AT)

    with console.capture() as captured:
        progress = ExecutionProgress("RUNNING", None, 1, (stage(), ended))
        console.print(table(list(stage_rows(["load", "save"], progress))))

    load, save, tell = captured.get().splitlines()
    assert "▸" in load
    assert "1 of 4 frames, 50 rows" in load
    assert "save" in save
    assert "frames" not in save
    assert "✗" in tell
    assert "2 failed" in tell


def test_a_share_is_of_frames_where_the_number_of_rows_is_not_known() -> None:
    assert stage(total_rows=None).share == 0.25
    assert stage(total_rows=None, frames=0, frames_done=0).share == 0.0
    assert stage(ended_at=AT).share == 1.0
