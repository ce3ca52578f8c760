"""Sealing: from a new event to its row and immutable bytes.

The reference implementation; `streams.events.sealer` prefers the native one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from streams.events.canonical import (
    canonical,
    canonical_fields,
    checksum,
    millis,
    semantic_digest,
)
from streams.events.catalogue import Catalogue, EventType
from streams.events.codec import Codec
from streams.events.errors import BadField, InlineTooLarge
from streams.events.model import Json, NewEvent, PayloadRef
from streams.events.rules import check, check_producer

INLINE_MAX_BYTES = 64 * 1024


class Sealed(Protocol):
    """An event ready for the log: the searchable fields and the encoded envelope."""

    @property
    def record(self) -> dict[str, Any]:
        """The envelope's Avro record."""
        ...

    @property
    def kind(self) -> EventType: ...
    @property
    def event_id(self) -> int: ...
    @property
    def root_id(self) -> int: ...
    @property
    def idempotency_key(self) -> str: ...
    @property
    def expected_version(self) -> int | None: ...
    @property
    def claim(self) -> str | None: ...
    @property
    def reference(self) -> str | None:
        """The payload reference as JSON."""
        ...

    @property
    def digest(self) -> bytes: ...
    @property
    def envelope(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class SealedEvent:
    """An event sealed by this module."""

    record: dict[str, Any]
    kind: EventType
    expected_version: int | None
    claim: str | None
    reference: str | None
    digest: bytes
    envelope: bytes

    @property
    def event_id(self) -> int:
        return int(self.record["event_id"])

    @property
    def root_id(self) -> int:
        return int(self.record["root_id"])

    @property
    def idempotency_key(self) -> str:
        return str(self.record["idempotency_key"])


def seal(
    event: NewEvent, *, event_id: int, producer: str, codec: Codec, catalogue: Catalogue
) -> SealedEvent:
    """Validate `event` against the catalogue, and seal it.

    Raises:
        BadEvent: the event is invalid.
        BadLocator: `producer` is not a locator.
    """
    check_producer(producer)
    kind = check(event, catalogue)
    record = _record(event, kind, catalogue, event_id, producer)
    _check_size(event, record)
    try:
        fields = canonical_fields(record, event.meta)
        record["checksum"] = checksum(fields)
    except TypeError as error:
        raise BadField(event.type, "text", f"is not valid Unicode: {error}") from error
    reference = fields.get("payload_ref")
    return SealedEvent(
        record=record,
        kind=kind,
        expected_version=event.expected_version,
        claim=None if kind.claim is None else f"{kind.name}:{event.meta[kind.claim]}",
        reference=None if reference is None else canonical(reference).decode(),
        digest=semantic_digest(fields),
        envelope=codec.encode(record),
    )


def stream_of(event: NewEvent, kind: EventType, catalogue: Catalogue) -> tuple[str, str]:
    """Return the stream and the aggregate id: the root's own, or one of its entities'."""
    root = f"{event.root.type}/{event.root.id}"
    where = catalogue.roots[kind.root].entities[kind.entity]
    if where is None:
        return root, root
    found = event.node_name if where == "node_name" else event.meta[where]
    entity = f"{kind.entity}/{found}"
    return f"{root}/{entity}", entity


def _record(
    event: NewEvent, kind: EventType, catalogue: Catalogue, event_id: int, producer: str
) -> dict[str, Any]:
    """Return the envelope's Avro record, without its checksum."""
    stream_id, aggregate_id = stream_of(event, kind, catalogue)
    return {
        "event_id": event_id,
        "tenant_id": event.tenant_id,
        "organization_id": event.organization_id,
        "root_type": event.root.type,
        "root_id": event.root.id,
        "execution_id": event.root.id if event.root.type == "execution" else None,
        "parent_execution_id": event.parent_execution_id,
        "catalog_id": event.catalog_id,
        "stream_id": stream_id,
        "aggregate_type": kind.entity,
        "aggregate_id": aggregate_id,
        "event_type": kind.name,
        "schema_name": kind.schema_name,
        "schema_version": kind.version,
        "event_time": millis(event.event_time),
        "producer": producer,
        "causation_id": event.causation_id,
        "correlation_id": event.correlation_id or str(event.root.id),
        "idempotency_key": event.idempotency_key,
        "node_name": event.node_name,
        "node_type": event.node_type,
        "status": event.status,
        "error": event.error,
        "current_index": event.current_index,
        "current_item": _json_text(event, "current_item", event.current_item),
        "meta": canonical(dict(event.meta)).decode(),
        "context": _json_text(event, "context", event.context),
        "result": _json_text(event, "result", event.result),
        "payload_ref": None if event.payload_ref is None else _reference(event.payload_ref),
        "trace": event.trace,
    }


def _json_text(event: NewEvent, field: str, value: Json) -> str | None:
    if value is None:
        return None
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError as error:
        raise BadField(event.type, field, f"is not JSON: {error}") from error


def _check_size(event: NewEvent, record: dict[str, Any]) -> None:
    """Reject data that belongs in the payload store."""
    carried = ("error", "current_item", "context", "result")
    texts = {name: record[name] for name in carried if record[name] is not None}
    if 4 * sum(map(len, texts.values())) <= INLINE_MAX_BYTES:
        return
    sizes = {name: len(text.encode("utf-8", "surrogatepass")) for name, text in texts.items()}
    if (total := sum(sizes.values())) > INLINE_MAX_BYTES:
        why = (
            f"the event has {total} bytes of data, the limit is {INLINE_MAX_BYTES}; "
            "store the data as a payload and append its reference"
        )
        raise InlineTooLarge(event.type, max(sizes, key=lambda name: sizes[name]), why)


def _reference(ref: PayloadRef) -> dict[str, Any]:
    hint = ref.ipc
    return {
        "uri": ref.uri,
        "sha256": ref.sha256,
        "media_type": ref.media_type,
        "byte_length": ref.byte_length,
        "row_count": ref.row_count,
        "schema_digest": ref.schema_digest,
        "compression": ref.compression,
        "ipc": None
        if hint is None
        else {
            "node_id": hint.node_id,
            "shm_name": hint.shm_name,
            "schema_digest": hint.schema_digest,
            "valid_until": millis(hint.valid_until),
        },
    }
