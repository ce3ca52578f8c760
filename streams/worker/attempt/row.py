"""One pass through a pipeline: its state and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from streams.events.model import Json
from streams.playbook.model import Task
from streams.playbook.result_policy import ResultPolicy
from streams.worker.attempt.views import Placement
from streams.worker.port import Outcome


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The last outcome of a task whose result is stored, or read by other steps."""

    outcome: Outcome
    placed: Placement | None
    policy: ResultPolicy | None = None


@dataclass(slots=True)
class PipelineRow:
    """One pass through a pipeline: its scope, and its changes so far."""

    number: int
    scope: dict[str, object]
    """This row's scope; it must hold the mappings `iter`, `vars` and `ctx`."""
    ctx: dict[str, Json] = field(default_factory=dict)
    """Changes by `set_ctx`."""
    vars: dict[str, Json] = field(default_factory=dict)
    """Changes by `set_vars`."""
    retries: int = 0
    jumps: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, TaskOutcome] | None = None
    """Outcomes of tasks by label; None: nothing reads them."""


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """How a pass ended: the last task's envelope."""

    status: Literal["success", "error"]
    data: Json
    meta: Mapping[str, Json]
    error: Mapping[str, Json] | None = None
    """kind, message and task"""
    task: str = ""
    """The label of the last task."""

    @classmethod
    def failed(cls, task: Task, kind: str, message: str) -> RowOutcome:
        """Return the outcome of a pass that failed without data."""
        return cls("error", None, {}, {"kind": kind, "message": message, "task": task.label})

    @property
    def envelope(self) -> dict[str, object]:
        """The result as sinks see it."""
        whole: dict[str, object] = {"status": self.status, "data": self.data, "meta": self.meta}
        return whole if self.error is None else {**whole, "error": self.error}


def extend(scope: dict[str, object], name: str, changes: Mapping[str, Json]) -> None:
    """Apply changes to a mapping of the scope.

    The mapping is replaced, not modified: rows share `ctx`, and deferred calls hold the old one.
    """
    before = scope[name]
    if not isinstance(before, Mapping):
        raise TypeError(f"`{name}` of the scope is not a mapping")
    scope[name] = {**before, **changes}
