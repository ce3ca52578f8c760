"""From the events of a result to its row."""

from __future__ import annotations

from collections.abc import Iterator

from streams.events.event_fields import body, number, text
from streams.events.model import Event
from streams.projector.rows import ResultEndRow, ResultRefRow, Row
from streams.results.reference import Reference, result_uri


def result_rows(event: Event) -> Iterator[Row]:
    """Yield the row that an event of a result makes or changes."""
    if event.type == "result.stored":
        yield _stored(event)
    elif event.type == "result.expired":
        yield ResultEndRow(
            ref_id=number(event, "result_id"), expired_at=event.ingest_time, last_seq=event.seq
        )


def _stored(event: Event) -> ResultRefRow:
    ref, payload = Reference(body(event.result)), event.payload_ref
    result_id, task = number(event, "result_id"), text(event, "task")
    parent = event.meta.get("parent_result_id")
    step = event.node_name or "step"
    name = result_uri(event.root.id, step, task or step, result_id)
    return ResultRefRow(
        ref_id=result_id,
        ref=ref.uri or name,
        execution_id=event.root.id,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        parent_ref_id=None if parent is None else int(parent),
        step_name=event.node_name,
        task_label=task,
        store_tier=text(event, "store") or "object",
        physical_uri=None if payload is None else payload.uri,
        scope=text(event, "scope") or "execution",
        content_type=None if payload is None else payload.media_type,
        byte_length=None if payload is None else payload.byte_length,
        sha256=None if payload is None else payload.sha256,
        compression=ref.compression,
        extracted=ref.extracted,
        preview=ref.preview,
        expires_at=text(event, "expires_at"),
        created_at=event.ingest_time,
        last_seq=event.seq,
    )
