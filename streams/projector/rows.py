"""Rows of the projections: one class per table, one field per column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from streams.events.model import PayloadRef
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow

PROJECTION_VERSION = 1
"""Version of the fold; raised when the same events give other rows, which needs a rebuild."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRow:
    """One run of one playbook."""

    execution_id: int
    tenant_id: str
    organization_id: str
    created_at: datetime
    updated_at: datetime
    catalog_id: int | None = None
    parent_execution_id: int | None = None
    path: str | None = None
    version: int | None = None
    status: str = "RUNNING"
    last_event_type: str | None = None
    last_node_name: str | None = None
    last_event_id: int | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    error: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    result: object = None
    result_ref: PayloadRef | None = None
    last_seq: int = 0
    projection_version: int = PROJECTION_VERSION
    state_checksum: str | None = None
    """The checksum of the whole execution, its stages, frames, commands and results included."""

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.execution_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One loop, fan-out or reduce step of an execution."""

    stage_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    parent_event_id: int | None
    loop_id: int
    kind: str
    step_name: str
    dsl_ref: str
    status: str
    frame_policy: dict[str, Any]
    total_rows: int | None
    frames: int
    frames_done: int
    rows_done: int
    rows_failed: int
    error: str | None
    started_at: datetime
    ended_at: datetime | None
    last_seq: int
    projection_version: int = PROJECTION_VERSION

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.stage_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """A window of a stage's rows. `events_emitted` is the version of the frame's stream."""

    frame_id: int
    stage_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    step_name: str
    ordinal: int
    shard_id: str | None
    cursor: dict[str, Any]
    row_count: int
    rows_failed: int
    status: str
    owner_worker: str | None
    lease_until: datetime | None
    output_ref: PayloadRef | None
    events_emitted: int
    attempts: int
    error: str | None
    created_at: datetime
    completed_at: datetime | None
    last_seq: int
    projection_version: int = PROJECTION_VERSION

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.frame_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRow:
    """The output of a frame's commit or checkpoint, as read from its payload."""

    frame_id: int
    stage_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    step_name: str | None
    schema_digest: str | None
    row_count: int
    byte_count: int
    column_count: int | None
    null_count: int | None
    problem: str | None
    last_seq: int

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.frame_id, self.last_seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow:
    """One tool step. `events_emitted` is the version of the command's stream."""

    command_id: int
    execution_id: int
    tenant_id: str
    organization_id: str
    step_name: str
    tool: str
    pool: str
    status: str
    owner_worker: str | None
    lease_until: datetime | None
    result_ref: PayloadRef | None
    error: str | None
    events_emitted: int
    attempts: int
    created_at: datetime
    completed_at: datetime | None
    last_seq: int
    projection_version: int = PROJECTION_VERSION

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.command_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogRow:
    """One version of a registered resource."""

    catalog_id: int
    version: int
    tenant_id: str
    organization_id: str
    path: str
    kind: str
    content: str | None
    content_ref: PayloadRef | None
    content_sha256: str
    created_at: datetime
    retired_at: datetime | None
    last_seq: int

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.catalog_id, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRefRow:
    """One result stored outside its event; `ref` is its name."""

    ref_id: int
    ref: str
    execution_id: int
    tenant_id: str
    organization_id: str
    parent_ref_id: int | None
    step_name: str | None
    task_label: str | None
    store_tier: str
    physical_uri: str | None
    scope: str
    content_type: str | None
    byte_length: int | None
    sha256: str | None
    compression: str | None
    extracted: object
    preview: object
    expires_at: str | None
    created_at: datetime
    last_seq: int

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.ref_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEndRow:
    """Changes to a result's row when it expires."""

    ref_id: int
    expired_at: datetime
    last_seq: int

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key."""
        return (self.ref_id,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """The state of an aggregate as of `seq`, and everything it was made with."""

    aggregate_type: str
    aggregate_id: str
    projection: str
    seq: int
    position: int
    chain: str
    tenant_id: str
    organization_id: str
    projection_version: int
    code_digest: str
    upcaster_versions: dict[str, str]
    payload_root: str
    encryption_context: dict[str, str]
    state: str
    checksum: str

    @property
    def key(self) -> tuple[int, ...]:
        """The primary key, but for the names of aggregate and projection."""
        return (int(self.aggregate_id), self.seq)

    @property
    def last_seq(self) -> int:
        """The last event in it."""
        return self.seq


Row: TypeAlias = (
    ExecutionRow
    | StageRow
    | FrameRow
    | OutputRow
    | CommandRow
    | CatalogRow
    | ResultRefRow
    | ResultEndRow
    | SnapshotRow
    | BusinessStateRow
    | BusinessProgressRow
)


PrimaryKey: TypeAlias = tuple[int | str, ...]
"""A primary key."""


def row_id(row: Row) -> int:
    """Return the id of an entity's row: the first part of its key."""
    found = row.key[0]
    assert isinstance(found, int), f"{type(row).__name__} has no id"
    return found


class Changes:
    """The newest value of every row that a batch of events changed."""

    def __init__(self) -> None:
        self._rows: dict[type[Row], dict[PrimaryKey, Row]] = {}

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows in order; a later value replaces an earlier one."""
        for row in rows:
            self._rows.setdefault(type(row), {})[row.key] = row

    def of(self, kind: type[Row]) -> list[Row]:
        """Return the rows of one table in key order, so that all writers lock in one order."""
        found = self._rows.get(kind, {})
        return [found[key] for key in sorted(found)]

    def count(self, kind: type[Row]) -> int:
        """Return the number of rows of one table."""
        return len(self._rows.get(kind, {}))

    def __iter__(self) -> Iterator[Row]:
        return (row for rows in self._rows.values() for row in rows.values())

    def __len__(self) -> int:
        return sum(map(len, self._rows.values()))
