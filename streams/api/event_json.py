"""JSON of events: 64-bit ids as strings, times in UTC, references as objects."""

from __future__ import annotations

from typing import Any, TypeAlias

from streams.events.model import Event
from streams.payload.content import reference_json

RowJson: TypeAlias = dict[str, Any]
"""A row or an event as JSON: its fields have the types of their columns."""


def event_json(event: Event) -> RowJson:
    """Serialize an event; empty fields are omitted."""
    fields = {
        "event_id": str(event.event_id),
        "seq": event.seq,
        "position": event.position,
        "event_type": event.type,
        "stream_id": event.stream_id,
        "stream_version": event.stream_version,
        "event_time": event.event_time,
        "ingest_time": event.ingest_time,
        "producer": event.producer,
        "causation_id": None if event.causation_id is None else str(event.causation_id),
        "correlation_id": event.correlation_id,
        "node_name": event.node_name,
        "node_type": event.node_type,
        "status": event.status,
        "error": event.error,
        "meta": dict(event.meta),
        "context": event.context,
        "result": event.result,
        "payload_ref": None if event.payload_ref is None else reference_json(event.payload_ref),
        "checksum": event.checksum,
    }
    return {name: value for name, value in fields.items() if value is not None}
