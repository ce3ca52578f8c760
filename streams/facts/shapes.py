"""Facts of executions, stages and frames, from the projector's rows. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from streams.events.model import Event
from streams.facts.model import ExecutionFact, FrameFact, StageFact
from streams.facts.work import Work
from streams.projector.rows import ExecutionRow, FrameRow, StageRow

_MS = timedelta(milliseconds=1)


class At(NamedTuple):
    """The event that facts are as of, and the playbook of its execution."""

    event: Event
    path: str


def execution_fact(row: ExecutionRow, at: At) -> ExecutionFact:
    """Return the execution as of an event."""
    return ExecutionFact(
        execution_id=row.execution_id,
        tenant_id=row.tenant_id,
        organization_id=row.organization_id,
        path=at.path,
        catalog_version=row.version or 0,
        parent_execution_id=row.parent_execution_id,
        status=row.status,
        started_at=row.created_at,
        ended_at=row.end_time,
        duration_ms=_between(row.created_at, row.end_time),
        error=None if row.error is None else str(row.error),
        event_id=at.event.event_id,
        seq=at.event.seq,
        position=at.event.position,
        stored_at=at.event.ingest_time,
    )


def stage_fact(row: StageRow, at: At) -> StageFact:
    """Return a stage as of an event."""
    return StageFact(
        stage_id=row.stage_id,
        execution_id=row.execution_id,
        tenant_id=row.tenant_id,
        organization_id=row.organization_id,
        path=at.path,
        step=row.step_name,
        kind=row.kind,
        status=row.status,
        total_rows=row.total_rows,
        frames=row.frames,
        frames_done=row.frames_done,
        rows_done=row.rows_done,
        rows_failed=row.rows_failed,
        started_at=row.started_at,
        ended_at=row.ended_at,
        duration_ms=_between(row.started_at, row.ended_at),
        error=row.error,
        event_id=at.event.event_id,
        seq=at.event.seq,
        position=at.event.position,
        stored_at=at.event.ingest_time,
    )


def frame_fact(row: FrameRow, work: Work, at: At) -> FrameFact:
    """Return a frame as of an event, with the work on it."""
    return FrameFact(
        frame_id=row.frame_id,
        stage_id=row.stage_id,
        execution_id=row.execution_id,
        tenant_id=row.tenant_id,
        organization_id=row.organization_id,
        path=at.path,
        step=row.step_name,
        ordinal=row.ordinal,
        shard_id=row.shard_id,
        status=str(row.status),
        rows=row.row_count,
        rows_failed=row.rows_failed,
        retries=work.retries,
        attempts=row.attempts,
        worker=work.worker,
        worker_ms=work.held // _MS,
        output_bytes=work.output_bytes,
        dispatched_at=row.created_at,
        claimed_at=work.claimed_at,
        ended_at=row.completed_at,
        duration_ms=_between(row.created_at, row.completed_at),
        error=row.error,
        event_id=at.event.event_id,
        seq=at.event.seq,
        position=at.event.position,
        stored_at=at.event.ingest_time,
    )


def _between(start: datetime, end: datetime | None) -> int | None:
    return None if end is None else (end - start) // _MS
