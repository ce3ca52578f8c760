"""Rows of the planner's tables: a plan in parts, and its changes.

Only changed parts are written: a plan shares its unchanged parts with its predecessor, so
identity is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from streams.execution.frame import Frame
from streams.execution.plan import Plan
from streams.execution.stage import Stage
from streams.planner.watch import Watch
from streams.planner.watches import watch_of

EXECUTIONS, STAGES, FRAMES = "executions", "stages", "frames"
TABLES = {
    EXECUTIONS: "open executions, each with its position in the log",
    STAGES: "open stages of executions",
    FRAMES: "open frames of stages",
}
FORMAT = b"7"
"""First byte of each value; values of another format are ignored."""
MAX_VALUE_BYTES = 900_000
"""A plan with a larger part is not stored: Kafka would refuse the record."""
Read = Callable[[str, Sequence[bytes]], list[bytes | None]]
"""Reads values of a table of a plan's partition."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Row(Generic[_T]):
    """A part of a plan, without the parts that have rows of their own."""

    part: _T
    children: list[int]


_EXECUTION = TypeAdapter(_Row[Plan])
_STAGE = TypeAdapter(_Row[Stage])
_FRAME = TypeAdapter(Frame)


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan to write, and when to decide for it again."""

    plan: Plan
    wake_at: datetime | None


@dataclass(slots=True)
class PlanWrites:
    """Changes of the plans of one partition."""

    executions: dict[bytes, bytes | None] = field(default_factory=dict)
    stages: dict[bytes, bytes | None] = field(default_factory=dict)
    frames: dict[bytes, bytes | None] = field(default_factory=dict)

    @property
    def by_table(self) -> dict[str, dict[bytes, bytes | None]]:
        """The changes of each table."""
        return {EXECUTIONS: self.executions, STAGES: self.stages, FRAMES: self.frames}


class _Unreadable(Exception):
    """A value is missing, or of another format."""


def _body(value: bytes | None) -> bytes:
    if value is None or value[:1] != FORMAT:
        raise _Unreadable
    return value[1:]


def key_of(*ids: int) -> bytes:
    """Return the key of an execution, a stage or a frame."""
    return b"/".join(b"%d" % one for one in ids)


def whole_plan(value: bytes, read: Read) -> Plan | None:
    """Return a plan with its stages and their frames; None if a part is missing."""
    try:
        row = _EXECUTION.validate_json(_body(value).partition(b"\n")[2])
        plan, stages = row.part, {}
        keys = [key_of(plan.execution_id, stage_id) for stage_id in row.children]
        for found in _parts(read, STAGES, keys):
            stage_row = _STAGE.validate_json(found)
            stage = stage_row.part
            names = [key_of(plan.execution_id, stage.stage_id, one) for one in stage_row.children]
            frames = [_FRAME.validate_json(one) for one in _parts(read, FRAMES, names)]
            stages[stage.stage_id] = replace(
                stage, frames={frame.frame_id: frame for frame in frames}
            )
    except (ValidationError, _Unreadable):
        return None
    return replace(plan, stages=stages)


def _parts(read: Read, table: str, keys: Sequence[bytes]) -> list[bytes]:
    return [_body(value) for value in read(table, keys)] if keys else []


def stored_watch(value: bytes) -> Watch | None:
    """Return the watch that stands before a plan; None if it is of another format."""
    try:
        head = orjson.loads(_body(value).partition(b"\n")[0])
        absorbed, wake_at, owners, is_waiting, *rest = head
        at = None if wake_at is None else datetime.fromisoformat(wake_at)
    except (_Unreadable, ValueError):
        return None
    # Earlier releases wrote no backlog.
    backlog = tuple((kind, count) for kind, count in rest[0]) if rest else ()
    return Watch(absorbed, at, frozenset(owners), is_waiting, backlog)


def _row(saved: SavedPlan) -> bytes:
    """Return the value of an execution: its watch, a line end, its plan without stages.

    The watch is read at each start, for every open execution; a plan when it is needed.
    """
    plan, watch = saved.plan, watch_of(saved.plan, saved.wake_at)
    head = [
        watch.absorbed_through,
        watch.wake_at,
        sorted(watch.owners),
        watch.is_waiting,
        watch.backlog,
    ]
    row = _Row(replace(plan, stages={}), list(plan.stages))
    return FORMAT + orjson.dumps(head) + b"\n" + _EXECUTION.dump_json(row)


def add_changes(
    writes: PlanWrites, execution_id: int, before: Plan | None, saved: SavedPlan | None
) -> bool:
    """Add the changes of a plan; False if it is not stored any more."""
    added = PlanWrites()
    _write_plan(added, execution_id, before, saved)
    too_large = any(
        value is not None and len(value) > MAX_VALUE_BYTES
        for values in added.by_table.values()
        for value in values.values()
    )
    if too_large:
        added = PlanWrites()
        _write_plan(added, execution_id, before, None)
    for table, values in added.by_table.items():
        writes.by_table[table].update(values)
    return saved is not None and not too_large


def _write_plan(
    writes: PlanWrites, execution_id: int, before: Plan | None, saved: SavedPlan | None
) -> None:
    was = {} if before is None else before.stages
    now = {} if saved is None else saved.plan.stages
    for stage_id in was.keys() | now.keys():
        _write_stage(writes, execution_id, was.get(stage_id), now.get(stage_id))
    writes.executions[key_of(execution_id)] = None if saved is None else _row(saved)


def _write_stage(
    writes: PlanWrites, execution_id: int, before: Stage | None, after: Stage | None
) -> None:
    if before is after:
        return
    stage = before if after is None else after
    assert stage is not None
    was = {} if before is None else before.frames
    now = {} if after is None else after.frames
    for frame_id in was.keys() | now.keys():
        frame, key = now.get(frame_id), key_of(execution_id, stage.stage_id, frame_id)
        if frame is None:
            writes.frames[key] = None
        elif was.get(frame_id) is not frame:
            writes.frames[key] = FORMAT + _FRAME.dump_json(frame)
    key = key_of(execution_id, stage.stage_id)
    if after is None:
        writes.stages[key] = None
    else:
        row = _Row(replace(after, frames={}), list(now))
        writes.stages[key] = FORMAT + _STAGE.dump_json(row)
