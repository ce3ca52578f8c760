"""Concurrent rows of one frame, up to its limits, and their outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from streams.clock import Clock
from streams.events.model import Json, PayloadRef
from streams.events.reading import object_of, objects_of
from streams.execution.attempts import FrameReport
from streams.kafka.work.item import WorkItem
from streams.playbook.model import Step
from streams.worker.attempt.commit import Commit
from streams.worker.attempt.deferred import Deferral
from streams.worker.attempt.events import fit
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.row import PipelineRow, RowOutcome, TaskOutcome, extend
from streams.worker.options import Options
from streams.worker.rows.cursors import Rows

ERRORS_KEPT = 10
ERROR_CHARS = 500
ITEM_CHARS = 200


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a frame: duration, size and concurrent rows."""

    duration_s: float | None
    memory_bytes: int | None
    rows_at_once: int

    @classmethod
    def of(cls, item: WorkItem, options: Options) -> Bounds:
        """Read them from the frame's policy."""
        policy = item.policy or {}
        duration = policy.get("duration_ms")
        return cls(
            None if duration is None else duration / 1000,
            policy.get("memory_bytes"),
            policy.get("row_concurrency") or options.row_concurrency,
        )


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
    ) -> None:
        self._step, self._scope, self._rows, self._bounds = step, scope, rows, bounds
        self._deferral, self._clock = deferral, clock
        self._began, self._bytes, self._retries = clock.monotonic(), 0, 0
        self._next = 0
        self._is_closed = False
        self._failed: dict[int, tuple[str, str]] = {}
        self._changes: dict[int, dict[str, Json]] = {}
        self._done: dict[int, Json] = {}

    def scope_of(self, number: int) -> dict[str, object]:
        """Return the template scope of row `number`."""
        item, index = self._rows.items[number], self._rows.first + number
        scope = self._scope.copy()
        loop = self._step.loop
        iterator = loop.iterator if loop is not None else "item"
        scope[self._step.name] = {"result_index": index}
        scope[iterator] = item
        scope["iter"] = {iterator: item}
        scope["_loop"] = {"current_item": item, "index": index}
        return scope

    async def go(self, pipeline: Pipeline) -> None:
        """Run rows until all are done or a limit is reached."""
        width = min(self._bounds.rows_at_once, len(self._rows.items))
        if width <= 1:
            await self._lane(pipeline)
            return
        lanes = [asyncio.ensure_future(self._lane(pipeline)) for _ in range(width)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _lane(self, pipeline: Pipeline) -> None:
        while (number := self._begin()) is not None:
            row = PipelineRow(number, self.scope_of(number))
            ran = await pipeline.run(row)
            self._finish(row, ran)

    def _begin(self) -> int | None:
        number = self._next
        if self._is_closed or number >= len(self._rows.items):
            return None
        if self._is_full() and self._rows.may_part(number):
            self._is_closed = True
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

    def _finish(self, row: PipelineRow, ran: RowOutcome) -> None:
        self._retries += row.retries
        if ran.status == "error":
            error = ran.error or {}
            self._failed[row.number] = (str(error.get("task")), _message(error))
            return
        data = ran.data if row.outcomes is None else _output(row.outcomes, ran)
        self._done[row.number] = data
        self._bytes += _size(data)
        if row.ctx:
            self._changes[row.number] = row.ctx
            # Rows that start later see it; in a sequential loop, all that follow.
            extend(self._scope, "ctx", row.ctx)

    def fail(self, rows: Iterable[int], task: str, why: str) -> None:
        """Mark rows as failed because their saves were rejected."""
        for number in rows:
            self._failed[number] = (task, why)
            self._done.pop(number, None)
            self._changes.pop(number, None)

    def drop_failed(self) -> None:
        """Drop the saves of failed rows."""
        if self._failed:
            self._deferral.drop(frozenset(self._failed))

    @property
    def outputs(self) -> list[Json]:
        """One value for each started row; null for those that failed."""
        return [self._done.get(number) for number in range(self._next)]

    def commit(self, output: PayloadRef | None, changes: Mapping[str, Json]) -> Commit:
        """Return the frame's outcome; `changes` are the serialized changes of `ctx`."""
        rows, count = self._rows, self._next
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
            payload_ref=output,
        )
        return Commit(report=report, continues=continues)

    @property
    def changing(self) -> list[int]:
        """The rows that changed `ctx`."""
        return list(self._changes)

    @property
    def changes(self) -> dict[str, Json]:
        """The changes of all rows to `ctx`, later rows over earlier ones."""
        changes: dict[str, Json] = {}
        for number in sorted(self._changes):
            changes |= self._changes[number]
        return changes

    def _errors(self) -> list[dict[str, Json]]:
        first = sorted(self._failed)[:ERRORS_KEPT]
        return [
            {
                "row": self._rows.first + number,
                "item": fit(_text(self._rows.items[number]), ITEM_CHARS),
                "task": self._failed[number][0],
                "error": fit(self._failed[number][1], ERROR_CHARS),
            }
            for number in first
        ]


def _output(outcomes: Mapping[str, TaskOutcome], ran: RowOutcome) -> Json:
    """Return a row's output: the reference if its last result is stored, else the data."""
    last = outcomes.get(ran.task)
    if last is None or last.placed is None or last.placed.reference is None:
        return ran.data
    return last.placed.reference.to_json()


def _message(error: Mapping[str, Json]) -> str:
    return f"{error.get('kind')}: {error.get('message')}"


def _text(item: Json) -> str:
    return item if isinstance(item, str) else orjson.dumps(item, default=str).decode()


def _size(value: Json) -> int:
    return 8 if value is None else len(orjson.dumps(value, default=str))
