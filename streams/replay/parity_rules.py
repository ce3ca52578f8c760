"""Rules that every event of a finished run must satisfy. Pure."""

from __future__ import annotations

from streams.errors import StreamsError
from streams.events.catalogue import Catalogue
from streams.events.model import Event, Json, NewEvent
from streams.events.rules import check, check_producer
from streams.events.seal import stream_of
from streams.events.upcast import upcast

_ENVELOPE = ("event_id", "tenant_id", "organization_id", "correlation_id", "producer", "checksum")


class EnvelopeRule:
    """An event has its mandatory fields and satisfies the catalogue, in its newest version."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def __call__(self, event: Event) -> str | None:
        """Return what is wrong with an event."""
        for name in _ENVELOPE:
            if not getattr(event, name):
                return f"{name} is missing"
        if event.type not in self._catalogue.types:
            return f"{event.type} is not in the event catalogue"
        try:
            return self._of_catalogue(upcast(event, self._catalogue))
        except StreamsError as error:
            return str(error)

    def _of_catalogue(self, event: Event) -> str | None:
        check_producer(event.producer)
        new = _as_new(event)
        kind = check(new, self._catalogue)
        found = (event.schema_name, event.aggregate_type, event.stream_id, event.aggregate_id)
        expected = (kind.schema_name, kind.entity, *stream_of(new, kind, self._catalogue))
        if found != expected:
            return f"schema, entity and stream are {found}, by the catalogue {expected}"
        return None


def no_hint_alone(event: Event) -> str | None:
    """Return what is wrong if shared memory is the only copy of a payload of an event."""
    ref = event.payload_ref
    if ref is not None and not (ref.uri and ref.sha256):
        return "its payload reference has no uri of tier 3"
    for name in ("context", "result", "current_item"):
        if _has_lone_hint(getattr(event, name)):
            return f"a reference in its {name} is in shared memory, and has no uri of tier 3"
    return None


def has_key(event: Event) -> str | None:
    """Return what is wrong if an event could be appended twice by a retry."""
    return None if event.idempotency_key else "it has no idempotency key"


def _has_lone_hint(value: Json, *, has_uri: bool = False) -> bool:
    if isinstance(value, dict):
        if value.get("shm_name") and not has_uri:
            return True
        inside = has_uri or bool(value.get("uri") and value.get("sha256"))
        return any(
            _has_lone_hint(one, has_uri=inside and key == "ipc") for key, one in value.items()
        )
    return isinstance(value, list) and any(_has_lone_hint(one) for one in value)


def _as_new(event: Event) -> NewEvent:
    """Return an event as its writer gave it, to be checked by the rules of appending."""
    return NewEvent(
        type=event.type,
        root=event.root,
        tenant_id=event.tenant_id,
        organization_id=event.organization_id,
        idempotency_key=event.idempotency_key,
        event_time=event.event_time,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        parent_execution_id=event.parent_execution_id,
        catalog_id=event.catalog_id,
        node_name=event.node_name,
        node_type=event.node_type,
        status=event.status,
        error=event.error,
        current_index=event.current_index,
        current_item=event.current_item,
        meta=event.meta,
        context=event.context,
        result=event.result,
        payload_ref=event.payload_ref,
        trace=event.trace,
    )
