"""Concurrent rows of one frame, up to its limits, and their outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from streams.clock import Clock
from streams.events.model import Json, PayloadRef
from streams.events.reading import object_of, objects_of
from streams.execution.attempts import FrameReport
from streams.playbook.model import Step
from streams.playbook.plain_views import row_names
from streams.playbook.spelling import Spelling
from streams.worker.attempt.commit import Commit
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.events import fit
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.row import PipelineRow, RowOutcome, extend
from streams.worker.pace.lanes import RowLanes
from streams.worker.rows.bounds import Bounds
from streams.worker.rows.cursors import Rows
from streams.worker.rows.row_values import (
    error_message,
    item_text,
    merged_changes,
    row_output,
    value_size,
)

ERRORS_KEPT = 10
ERROR_CHARS = 500
ITEM_CHARS = 200


class WindowRun:
    """One frame's rows. Rows start in order, so the started ones are the first n."""

    def __init__(
        self,
        step: Step,
        scope: dict[str, object],
        rows: Rows,
        bounds: Bounds,
        deferral: Deferral,
        clock: Clock,
        *,
        began: float | None = None,
        before: int = 0,
    ) -> None:
        """Run the rows after the frame's first `before`; the frame itself began at `began`."""
        self._step, self._scope, self._rows, self._bounds = step, scope, rows, bounds
        self._deferral, self._clock = deferral, clock
        self._resumed, self._bytes, self._retries = clock.monotonic(), 0, 0
        self._began = self._resumed if began is None else began
        self._before = self._next = before
        self._is_closed = self._is_parted = False
        self._failed: dict[int, tuple[str, str]] = {}
        self._changes: dict[int, dict[str, Json]] = {}
        self._vars: dict[int, dict[str, Json]] = {}
        self._done: dict[int, Json] = {}
        self._total = rows.total

    def scope_of(self, number: int) -> dict[str, object]:
        """Return the template scope of row `number`."""
        place = number - self._before
        item, index = self._rows.items[place], self._rows.first + place
        scope = self._scope.copy()
        loop = self._step.loop
        iterator = loop.iterator if loop is not None else "item"
        scope[iterator] = item
        if self._step.spelling is Spelling.NOETL:
            if loop is not None and loop.cursor is not None and loop.cursor.is_whole:
                scope["frame"] = {"rows": item}
            return scope | row_names(iterator, item, index, self._total)
        scope[self._step.name] = {"result_index": index}
        scope["iter"] = {iterator: item}
        scope["_loop"] = {"current_item": item, "index": index}
        return scope

    @property
    def width(self) -> int:
        """How many rows run at once."""
        return max(1, min(self._bounds.rows_at_once, len(self._rows.items)))

    async def go(self, pipeline: Pipeline, lanes: RowLanes) -> None:
        """Run rows until all are done or a limit is reached."""
        width = self.width
        if width == 1:  # one after the other, also while one waits
            lanes.enter()
            await self._lane(pipeline, lanes)
            return
        running: set[asyncio.Task[None]] = set()

        def start() -> None:
            if self._next - self._before < len(self._rows.items) and not self._is_closed:
                lanes.enter()
                running.add(asyncio.ensure_future(self._lane(pipeline, lanes)))

        for _ in range(width):
            start()
        lanes.start_with(start)
        try:
            while running:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                for lane in done:
                    lane.result()
        finally:
            self._is_closed = True
            for lane in running:
                lane.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _lane(self, pipeline: Pipeline, lanes: RowLanes) -> None:
        try:
            while (number := self._begin()) is not None:
                row = PipelineRow(number, self.scope_of(number))
                ran = await pipeline.run(row)
                self._finish(row, ran)
                if lanes.gives_way:
                    return
        finally:
            lanes.leave()

    def _begin(self) -> int | None:
        number, place = self._next, self._next - self._before
        if self._is_closed or place >= len(self._rows.items):
            return None
        is_full = self._is_full()
        if (is_full or self._is_due()) and self._rows.may_part(place):
            self._is_closed, self._is_parted = True, not is_full
            return None
        self._next += 1
        return number

    def _is_full(self) -> bool:
        bounds = self._bounds
        if (
            bounds.memory_bytes is not None
            and self._bytes + self._deferral.byte_count >= bounds.memory_bytes
        ):
            return True
        if bounds.duration_s is None:
            return False
        return self._clock.monotonic() - self._began >= bounds.duration_s

    def _is_due(self) -> bool:
        """Return whether it is time for a checkpoint."""
        return self._clock.monotonic() - self._resumed >= self._bounds.checkpoint_s

    def _finish(self, row: PipelineRow, ran: RowOutcome) -> None:
        self._retries += row.retries
        if ran.status == "error":
            error = ran.error or {}
            self._failed[row.number] = (str(error.get("task")), error_message(error))
            return
        data = ran.data if row.outcomes is None else row_output(row.outcomes, ran)
        self._done[row.number] = data
        self._bytes += value_size(data)
        if row.vars:
            self._vars[row.number] = row.vars
            extend(self._scope, "vars", row.vars)
        if row.ctx:
            self._changes[row.number] = row.ctx
            # Rows that start later see it; in a sequential loop, all that follow.
            extend(self._scope, "ctx", row.ctx)
            if self._step.spelling is Spelling.NOETL:
                self._scope.update(row.ctx)

    def fail(self, rows: Iterable[int], task: str, why: str) -> None:
        """Mark rows as failed because their saves were rejected."""
        for number in rows:
            self._failed[number] = (task, why)
            self._done.pop(number, None)
            self._changes.pop(number, None)
            self._vars.pop(number, None)

    def drop_failed(self) -> None:
        """Drop the saves of failed rows."""
        if self._failed:
            self._deferral.drop(frozenset(self._failed))

    @property
    def outputs(self) -> list[Json]:
        """One value for each started row; null for those that failed."""
        return [self._done.get(number) for number in range(self._before, self._next)]

    def commit(self, output: PayloadRef | None, changes: Mapping[str, Json]) -> Commit:
        """Return the frame's outcome; `changes` are those of `ctx` and `vars`."""
        rows, count = self._rows, self._next - self._before
        continues = count < len(rows.items) and rows.rest is not None
        cursor = rows.rest(count) if continues and rows.rest is not None else rows.end
        report = FrameReport(
            rows=count,
            failed_rows=len(self._failed),
            cursor=dict(cursor),
            retries=self._retries,
            saved=dict(self._deferral.counts) or None,
            exhausted=rows.exhausted,
            errors=self._errors() if self._failed else None,
            ctx=object_of(changes.get("ctx")),
            ctx_elsewhere=objects_of(changes.get("ctx_elsewhere")),
            vars=object_of(changes.get("vars")),
            payload_ref=output,
        )
        is_checkpoint = continues and self._is_parted
        return Commit(
            report=report, continues=continues and not is_checkpoint, is_checkpoint=is_checkpoint
        )

    @property
    def changing(self) -> list[int]:
        """The rows that changed `ctx`."""
        return list(self._changes)

    @property
    def changes(self) -> dict[str, Json]:
        """The changes of all rows to `ctx`, later rows over earlier ones."""
        return merged_changes(self._changes)

    @property
    def vars_changing(self) -> list[int]:
        """The rows that changed `vars`."""
        return list(self._vars)

    @property
    def vars(self) -> dict[str, Json]:
        """The changes of all rows to `vars`, later rows over earlier ones."""
        return merged_changes(self._vars)

    def _errors(self) -> list[dict[str, Json]]:
        first = sorted(self._failed)[:ERRORS_KEPT]
        return [
            {
                "row": self._rows.first + number - self._before,
                "item": fit(item_text(self._rows.items[number - self._before]), ITEM_CHARS),
                "task": self._failed[number][0],
                "error": fit(self._failed[number][1], ERROR_CHARS),
            }
            for number in first
        ]
