"""Folded state of an execution."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from streams.events.model import PayloadRef, Root
from streams.execution.command import Command
from streams.execution.json_object import JsonObject
from streams.execution.stage import Stage
from streams.results.envelope import Envelope
from streams.results.spill import Group

RUNNING, COMPLETED, PARTIAL, FAILED, CANCELLED = (
    "RUNNING",
    "COMPLETED",
    "PARTIAL",
    "FAILED",
    "CANCELLED",
)
TERMINAL = frozenset((COMPLETED, PARTIAL, FAILED, CANCELLED))


@dataclass(frozen=True, kw_only=True)
class Activation:
    """One visit of a step."""

    step: str
    number: int
    args: JsonObject = field(default_factory=dict)
    args_elsewhere: list[Group] = field(default_factory=list)
    command_id: int | None = None
    planning_id: int | None = None
    """The command that computes the frames of a cursor."""
    stage_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planner's state of an execution; its size depends on the window, not the rows.

    The log was absorbed up to `seq` without a gap. `ahead` are later ones: own events whose
    append was acknowledged before the mirror published them.
    """

    execution_id: int
    tenant_id: str
    organization_id: str
    catalog_id: int
    catalog_version: int
    path: str
    started_at: datetime
    seq: int = 0
    ahead: frozenset[int] = frozenset()
    status: str = RUNNING
    is_suspended: bool = False
    suspension: str | None = None
    """Why it is suspended."""
    is_initialized: bool = False
    parent_execution_id: int | None = None
    parent_command_id: int | None = None
    parent_step: str | None = None
    reply_to: str | None = None
    pool: str | None = None
    """The pool of steps that name none; None: the playbook's."""
    fork_parts: int = 0
    """How many parts of a forked state are still to come; nothing is decided before the last."""
    is_replied: bool = False
    workload: JsonObject | None = None
    workload_ref: PayloadRef | None = None
    ctx: JsonObject = field(default_factory=dict)
    ctx_elsewhere: list[Group] = field(default_factory=list)
    """Values of `ctx` too large for an event."""
    results: dict[str, Envelope] = field(default_factory=dict)
    """The last result of each step."""
    visits: dict[str, int] = field(default_factory=dict)
    activations: dict[str, Activation] = field(default_factory=dict)
    commands: dict[int, Command] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)
    loops: dict[str, JsonObject] = field(default_factory=dict)
    """Progress of each loop step's last activation, for `execution.state`."""
    fanouts: dict[str, JsonObject] = field(default_factory=dict)
    failure: JsonObject | None = None
    """Why the execution will fail once in-flight work has ended: step, error, rows."""
    setbacks: dict[str, str] = field(default_factory=dict)
    """Errors of steps after which the playbook continues; the execution ends PARTIAL."""
    last_step: str | None = None
    result: JsonObject | None = None
    output: PayloadRef | None = None
    """The result's data, if too large for the event."""
    error: str | None = None
    ended_at: datetime | None = None
    last_event_type: str = ""
    last_event_id: int | None = None
    """The newest event in it: the cause of what is decided next."""
    last_node_name: str | None = None

    @property
    def root(self) -> Root:
        """The root of the execution's events."""
        return Root("execution", self.execution_id)

    @property
    def has_ended(self) -> bool:
        """Whether its status is final."""
        return self.status in TERMINAL


def key_of(step: str, visit: int) -> str:
    """Name one activation of a step."""
    return f"{step}#{visit}"
