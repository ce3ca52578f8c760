"""Deferred saves: collected over a frame, written once, behind a fence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from streams.errors import StreamsError
from streams.playbook.model import Task
from streams.playbook.spelling import Spelling
from streams.worker.errors import SaveFailed
from streams.worker.port import Config, Fence, Saved, Saver


class RowsRefused(StreamsError):
    """A target rejected some rows of the frame; the others can still be saved."""

    def __init__(self, rows: Iterable[int], task: str, why: str) -> None:
        super().__init__(why)
        self.rows, self.task = frozenset(rows), task


@dataclass(slots=True)
class _Target:
    saver: Saver
    spelling: Spelling
    calls: dict[str, list[tuple[int, Config]]] = field(default_factory=dict)
    is_saved: bool = False


class Deferral:
    """The deferred calls of one frame. Rows are all or nothing: a failed row saves nothing."""

    def __init__(self, fence: Fence, order: Iterable[str]) -> None:
        """Key the saves by `fence`; tasks are written in `order`, the pipeline's own."""
        self._fence, self._order = fence, tuple(order)
        self._targets: dict[tuple[str, str, Spelling], _Target] = {}
        self.byte_count = 0
        """Approximate memory of the calls."""

    def add(self, row: int, task: Task, saver: Saver, config: Config) -> None:
        """Defer one call to the end of the frame."""
        self.byte_count += _size(config)
        key = (task.kind, saver.target(config), task.spelling)
        target = self._targets.get(key)
        if target is None:
            target = self._targets[key] = _Target(saver, task.spelling)
        target.calls.setdefault(task.label, []).append((row, config))

    def drop(self, rows: frozenset[int]) -> None:
        """Drop the calls of these rows."""
        for target in self._targets.values():
            for label, calls in target.calls.items():
                target.calls[label] = [one for one in calls if one[0] not in rows]

    @property
    def counts(self) -> dict[str, int]:
        """Rows that the calls of each task would write."""
        counts: dict[str, int] = {}
        for target in self._targets.values():
            for label, calls in target.calls.items():
                counts[label] = counts.get(label, 0) + sum(_rows(call) for _, call in calls)
        return {label: count for label, count in counts.items() if count}

    async def save(self, saved: Saved) -> Saved | None:
        """Write everything, one transaction for each target.

        Returns the content of the last fence of an earlier attempt, if it got that far: that
        attempt's rows are then the frame's.

        Raises:
            RowsRefused: drop these rows, rebuild `saved` and save again.
            Unavailable: a target is down; retrying is safe.
        """
        waiting = [
            one for one in self._targets.values() if not one.is_saved and any(one.calls.values())
        ]
        for number, target in enumerate(waiting, start=1):
            is_last = number == len(waiting)
            found = await self._save_target(target, mark(saved) if is_last else saved)
            target.is_saved = True
            if (adopted := last_of(found)) is not None:
                return adopted
        return None

    async def _save_target(self, target: _Target, saved: Saved) -> Mapping[Fence, Saved]:
        batches = [
            (self.fence(label), [config for _, config in target.calls[label]])
            for label in self._order
            if target.calls.get(label)
        ]
        try:
            return await target.saver.save(batches, saved, target.spelling)
        except SaveFailed as refused:
            calls = target.calls.get(refused.task, [])
            failed_calls = [calls[row] for row in refused.rows if row < len(calls)]
            if not refused.rows:
                failed_calls = calls
            if not failed_calls:
                raise
            rows = (row for row, _ in failed_calls)
            raise RowsRefused(rows, refused.task, f"{refused.task}: {refused.why}") from refused

    def fence(self, label: str) -> Fence:
        """Return the fence of a task's save in this frame."""
        return replace(self._fence, task=label)


def mark(saved: Saved) -> Saved:
    """Mark this save as the frame's last."""
    return replace(saved, output={**(saved.output or {}), "final": True})


def last_of(found: Mapping[Fence, Saved]) -> Saved | None:
    """Return the last save of an earlier attempt, if there was one."""
    for saved in found.values():
        if saved.output is not None and saved.output.get("final"):
            return saved
    return None


def _size(config: Config) -> int:
    try:
        return len(orjson.dumps(config, default=str))
    except TypeError:  # the target rejects such a value
        return len(repr(config))


def _rows(config: Config) -> int:
    if isinstance(saves := config.get("saves"), list):
        return sum(_rows(one) for one in saves if isinstance(one, Mapping))
    rows = config.get("rows")
    return len(rows) if isinstance(rows, list) else 1
