"""Events as values: new ones of writers, stored ones of readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Routing: TypeAlias = bool | int | str
"""A routing value: no floats, so canonical bytes need no float rules."""


@dataclass(frozen=True, slots=True)
class Root:
    """The unit of order: its type picks the topic, its id the Kafka key."""

    type: str
    id: int

    def __str__(self) -> str:
        return f"{self.type}/{self.id}"


@dataclass(frozen=True, slots=True)
class IpcHint:
    """Location of a payload in shared memory: a hint, never trusted."""

    node_id: str
    shm_name: str
    schema_digest: str
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class PayloadRef:
    """A reference to immutable, content-addressed bytes outside the event."""

    uri: str
    sha256: str
    media_type: str
    byte_length: int
    row_count: int | None = None
    schema_digest: str | None = None
    compression: str | None = None
    ipc: IpcHint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to append. The catalogue defines the fields of its type."""

    type: str
    root: Root
    tenant_id: str
    organization_id: str
    idempotency_key: str
    event_time: datetime
    correlation_id: str | None = None
    causation_id: int | None = None
    parent_execution_id: int | None = None
    catalog_id: int | None = None
    node_name: str | None = None
    node_type: str | None = None
    status: str | None = None
    error: str | None = None
    current_index: int | None = None
    current_item: Json = None
    meta: Mapping[str, Routing] = field(default_factory=dict)
    context: Json = None
    result: Json = None
    payload_ref: PayloadRef | None = None
    trace: str | None = None
    schema_version: int | None = None
    expected_version: int | None = None
    """Required version of the entity's stream before this event; None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A stored event: the sealed envelope plus the fields the database assigned."""

    event_id: int
    root: Root
    seq: int
    position: int
    stream_id: str
    stream_version: int
    tenant_id: str
    organization_id: str
    aggregate_type: str
    aggregate_id: str
    type: str
    schema_name: str
    schema_version: int
    event_time: datetime
    ingest_time: datetime
    producer: str
    correlation_id: str
    idempotency_key: str
    checksum: str
    chain: str
    causation_id: int | None = None
    parent_execution_id: int | None = None
    catalog_id: int | None = None
    node_name: str | None = None
    node_type: str | None = None
    status: str | None = None
    error: str | None = None
    current_index: int | None = None
    current_item: Json = None
    meta: Mapping[str, Routing] = field(default_factory=dict)
    context: Json = None
    result: Json = None
    payload_ref: PayloadRef | None = None
    trace: str | None = None

    @property
    def execution_id(self) -> int | None:
        return self.root.id if self.root.type == "execution" else None


@dataclass(frozen=True, slots=True)
class Assigned:
    """Fields that the database assigns on append."""

    seq: int
    position: int
    stream_version: int
    ingest_time: datetime
    chain: str
