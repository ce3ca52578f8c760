"""The planner's tables: plans in RocksDB, so that a restart reads little of the log.

Executions, stages and frames have separate tables, and only changes are written: a plan shares
its unchanged parts with its predecessor, so identity is enough. Losing the tables costs a
rebuild from the log, never a decision.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter
from rocksdict import AccessType, Cache, Options, Rdict, WriteBatch

from streams.execution.frame import Frame
from streams.execution.plan import Plan
from streams.execution.stage import Stage

FORMAT = b"plans/6"
"""Changes with the format of the values; tables of another format are recreated."""
_PLANS, _STAGES, _FRAMES = TypeAdapter(Plan), TypeAdapter(Stage), TypeAdapter(Frame)
_CACHE_BYTES = 8 * 2**20


class PlanTables:
    """Plans by execution, on local disk."""

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._db = self._open()
        if self._db.get(b"format") != FORMAT:
            self._db.close()
            shutil.rmtree(folder)
            self._db = self._open()
            self._db[b"format"] = FORMAT
        self._written: dict[int, Plan] = {}

    def _open(self) -> Rdict:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        # The default buffers would take too much memory for every table of every process.
        options.set_row_cache(Cache(_CACHE_BYTES))
        options.set_write_buffer_size(_CACHE_BYTES)
        return Rdict(str(self._folder), options, access_type=AccessType.read_write())

    def load(self) -> dict[int, Plan]:
        """Return every stored plan."""
        frames: dict[int, dict[int, Frame]] = {}
        stages: dict[int, dict[int, Stage]] = {}
        plans: dict[int, Plan] = {}
        for key, value in self._db.items():
            assert isinstance(key, bytes)
            kind, _, rest = key.partition(b"/")
            if kind == b"f":
                frame = _FRAMES.validate_json(value)
                frames.setdefault(frame.stage_id, {})[frame.frame_id] = frame
            elif kind == b"s":
                stage = _STAGES.validate_json(value)
                stages.setdefault(int(rest.split(b"/")[0]), {})[stage.stage_id] = stage
            elif kind == b"e":
                plan = _PLANS.validate_json(value)
                plans[plan.execution_id] = plan
        for execution_id, plan in plans.items():
            whole = {
                key: replace(stage, frames=frames.get(key, {}))
                for key, stage in stages.get(execution_id, {}).items()
            }
            plans[execution_id] = replace(plan, stages=whole)
        self._written = dict(plans)
        return plans

    def save(self, plans: Iterable[Plan], ended: Iterable[int]) -> None:
        """Write the changes of open plans, and delete ended ones, in one batch."""
        batch = WriteBatch(raw_mode=True)
        for execution_id in ended:
            self._write(batch, self._written.pop(execution_id, None), None)
        for plan in plans:
            self._write(batch, self._written.get(plan.execution_id), plan)
            self._written[plan.execution_id] = plan
        if len(batch):
            self._db.write(batch)

    def _write(self, batch: WriteBatch, before: Plan | None, after: Plan | None) -> None:
        if before is after:
            return
        was = {} if before is None else before.stages
        now = {} if after is None else after.stages
        plan = before if after is None else after
        assert plan is not None
        for stage_id in was.keys() | now.keys():
            self._write_stage(batch, plan.execution_id, was.get(stage_id), now.get(stage_id))
        key = b"e/%d" % plan.execution_id
        if after is None:
            batch.delete(key)
        else:
            batch.put(key, _PLANS.dump_json(replace(after, stages={})))

    def _write_stage(
        self, batch: WriteBatch, execution_id: int, before: Stage | None, after: Stage | None
    ) -> None:
        if before is after:
            return
        was = {} if before is None else before.frames
        now = {} if after is None else after.frames
        for frame_id in was.keys() | now.keys():
            frame = now.get(frame_id)
            if frame is None:
                batch.delete(b"f/%d" % frame_id)
            elif was.get(frame_id) is not frame:
                batch.put(b"f/%d" % frame_id, _FRAMES.dump_json(frame))
        stage = before if after is None else after
        assert stage is not None
        key = b"s/%d/%d" % (execution_id, stage.stage_id)
        if after is None:
            batch.delete(key)
        else:
            batch.put(key, _STAGES.dump_json(replace(after, frames={})))

    def close(self) -> None:
        """Release the files."""
        self._db.close()
