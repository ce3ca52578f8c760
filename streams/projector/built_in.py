"""Declarations of the built-in projections, as playbooks declare business ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from streams.projector.core import absorb
from streams.projector.outputs import Outputs
from streams.projector.resources import absorb_resource
from streams.projector.rows import (
    PROJECTION_VERSION,
    CatalogRow,
    CommandRow,
    ExecutionRow,
    FrameRow,
    OutputRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
)
from streams.projector.snapshots import snapshot_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInProjection:
    """A projection of every installation: rows of one class, folded from the events of a root."""

    name: str
    version: int = PROJECTION_VERSION
    source: Literal["execution", "catalog"] = "execution"
    """The root whose events it folds."""
    fold: Callable[..., Any] = absorb
    row: type[Row]
    store: str = "postgres"
    table: str
    key: tuple[str, ...]
    column: str | None = None
    """It is this column of the rows, not all of them."""

    def to_json(self) -> dict[str, object]:
        """Return the declaration as JSON."""
        fold = self.fold
        return {
            "name": self.name,
            "version": self.version,
            "source": {"root": self.source},
            "fold": f"{fold.__module__}.{fold.__qualname__}",
            "store": self.store,
            "table": self.table,
            "key": list(self.key),
            "column": self.column,
        }


def _of(name: str, row: type[Row], *key: str, **fields: Any) -> BuiltInProjection:
    fields = {"table": f"noetl.{name}", **fields}
    return BuiltInProjection(name=name, row=row, key=key, **fields)


_SNAPSHOT_KEY = ("aggregate_type", "aggregate_id", "projection", "seq")
BUILT_IN: tuple[BuiltInProjection, ...] = (
    _of("execution", ExecutionRow, "execution_id"),
    _of("execution.state", ExecutionRow, "execution_id", table="noetl.execution", column="state"),
    _of("stage", StageRow, "stage_id"),
    _of("loop", StageRow, "loop_id", table="noetl.stage"),
    _of("frame", FrameRow, "frame_id"),
    _of("frame_output", OutputRow, "frame_id", "last_seq", fold=Outputs.rows),
    _of("command", CommandRow, "command_id"),
    _of("result_ref", ResultRefRow, "ref_id"),
    _of("snapshot", SnapshotRow, *_SNAPSHOT_KEY, fold=snapshot_of),
    _of("catalog", CatalogRow, "catalog_id", "version", source="catalog", fold=absorb_resource),
)
