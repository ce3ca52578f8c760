"""Rows of results, from their events."""

from __future__ import annotations

from streams.events.model import Event
from streams.events.types import ResultEvent, ResultExpired, ResultStored
from streams.projector.rows import ResultEndRow, ResultRefRow, Row
from streams.results.reference import ResultRef, result_uri


def result_row(event: Event, known: ResultEvent) -> Row:
    """Return the row that an event of a result makes or changes."""
    if isinstance(known, ResultExpired):
        return ResultEndRow(
            ref_id=known.result_id, expired_at=event.ingest_time, last_seq=event.seq
        )
    return _stored(event, known)


def _stored(event: Event, stored: ResultStored) -> ResultRefRow:
    ref, payload = ResultRef(stored.result or {}), stored.payload_ref
    step = stored.node_name or "step"
    name = result_uri(event.root.id, step, stored.task or step, stored.result_id)
    return ResultRefRow(
        ref_id=stored.result_id,
        ref=ref.uri or name,
        execution_id=event.root.id,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        parent_ref_id=stored.parent_result_id,
        step_name=event.node_name,
        task_label=stored.task,
        store_tier=stored.store,
        physical_uri=None if payload is None else payload.uri,
        scope=stored.scope,
        content_type=None if payload is None else payload.media_type,
        byte_length=None if payload is None else payload.byte_length,
        sha256=None if payload is None else payload.sha256,
        compression=ref.compression,
        extracted=ref.extracted,
        preview=ref.preview,
        expires_at=stored.expires_at,
        created_at=event.ingest_time,
        last_seq=event.seq,
    )
