"""First events of executions, and events of rejected records. Pure."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import datetime

import orjson

from streams.events.model import NewEvent, PayloadRef, Root
from streams.events.text import storable
from streams.events.types import TriggerRejected
from streams.execution.initialization import ExecutionStart, first_event
from streams.kafka.feed.port import Record
from streams.payload.port import Scope
from streams.trigger.port import Origin, PlaybookVersion
from streams.trigger.record import Request

MAX_REASON_CHARS = 4000


def initialized(
    request: Request,
    playbook: PlaybookVersion,
    origin: Origin,
    *,
    execution_id: int,
    now: datetime,
) -> NewEvent:
    """Return the first event of the requested execution."""
    start = ExecutionStart(
        execution_id=execution_id,
        scope=Scope(request.tenant, request.organization),
        catalog_id=playbook.catalog_id,
        path=request.path,
        version=playbook.version,
        workload=dict(request.workload),
        pool=request.pool,
        subscription=request.subscription,
    )
    first = first_event(
        start,
        key=f"trigger/{origin}",
        now=now,
        correlation_id=request.correlation_id,
        reply_to=request.reply_to,
    )
    return first if request.trace is None else replace(first, trace=request.trace)


def rejected(
    origin: Origin,
    reason: str,
    *,
    tenant: str,
    organization: str,
    trigger_id: int,
    now: datetime,
    record_ref: PayloadRef,
    subscription: str | None = None,
) -> NewEvent:
    """Return the event of a rejected record, with the reason and the record."""
    event = TriggerRejected(
        error=plain(reason),
        topic=origin.topic,
        topic_id=origin.topic_id,
        partition=origin.partition,
        offset=origin.offset,
        subscription=subscription,
        payload_ref=record_ref,
    )
    return NewEvent(
        root=Root("trigger", trigger_id),
        tenant_id=tenant,
        organization_id=organization,
        idempotency_key=f"trigger/{origin}",
        event_time=now,
        **event.columns(),
    )


def record_bytes(record: Record) -> bytes:
    """Return a whole record as JSON, so that it can be sent again unchanged."""
    return orjson.dumps(
        {
            "topic": record.topic_partition.topic,
            "partition": record.topic_partition.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key_base64": _base64(record.key),
            "value_base64": _base64(record.value),
            "headers": [[name, _base64(value)] for name, value in record.headers],
        }
    )


def plain(reason: str) -> str:
    """Return a reason without NUL and of limited length."""
    fit = storable(reason)
    return fit if len(fit) <= MAX_REASON_CHARS else fit[: MAX_REASON_CHARS - 1] + "…"


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
