"""What the planner's timer must know of every open execution, also without its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeVar

from streams.execution.plan import Plan
from streams.log.worker_incarnations import is_over
from streams.planner.backlog import Backlog, backlog_of
from streams.planner.items import waiting_ids
from streams.planner.watch import Watch

_T = TypeVar("_T")


def watch_of(plan: Plan, wake_at: datetime | None) -> Watch:
    """Return the watch of a plan."""
    absorbed = plan.seq
    while absorbed + 1 in plan.ahead:
        absorbed += 1
    is_waiting = any(waiting_ids(plan))
    return Watch(absorbed, wake_at, frozenset(_owners(plan)), is_waiting, backlog_of(plan))


def _owners(plan: Plan) -> Iterator[str]:
    for command in plan.commands.values():
        if command.lease is not None:
            yield command.lease.owner
    for stage in plan.stages.values():
        for frame in stage.frames.values():
            if frame.lease is not None:
                yield frame.lease.owner


class Watches:
    """The timers of open executions; most have none."""

    def __init__(self) -> None:
        self._wake_at: dict[int, datetime] = {}
        self._owners: dict[int, frozenset[str]] = {}
        self._check_at: dict[int, datetime] = {}
        self._backlog: dict[int, Backlog] = {}

    def set(self, execution_id: int, watch: Watch) -> None:
        """Replace the watch of an execution, but for the check of its work items."""
        _put(self._wake_at, execution_id, watch.wake_at)
        _put(self._owners, execution_id, watch.owners or None)
        _put(self._backlog, execution_id, watch.backlog or None)

    def check_work_at(self, execution_id: int, at: datetime | None) -> None:
        """Look at its waiting work items at this time; None: it has none."""
        _put(self._check_at, execution_id, at)

    def drop(self, execution_id: int) -> None:
        """Forget an execution."""
        for timers in (self._wake_at, self._owners, self._check_at, self._backlog):
            timers.pop(execution_id, None)

    @property
    def backlog(self) -> Counter[str]:
        """How many frames wait for a worker, by the kind of their stage."""
        found: Counter[str] = Counter()
        for one in self._backlog.values():
            found.update(dict(one))
        return found

    def due(self, now: datetime, incarnations: Mapping[str, str]) -> list[int]:
        """Return the executions to decide for: by time, or since a worker is a new one."""
        due = dict.fromkeys(key for key, at in self._wake_at.items() if at <= now)
        for key, owners in self._owners.items():
            if any(is_over(owner, incarnations) for owner in owners):
                due[key] = None
        return list(due)

    def work_due(self, now: datetime, limit: int) -> list[int]:
        """Return up to `limit` executions whose work items may have to be published again."""
        due = []
        for key, at in self._check_at.items():
            if at <= now:
                due.append(key)
                if len(due) == limit:
                    break
        return due


def _put(timers: dict[int, _T], key: int, value: _T | None) -> None:
    if value is None:
        timers.pop(key, None)
    else:
        timers[key] = value
