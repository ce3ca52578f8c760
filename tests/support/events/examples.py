"""Events of every type, made from the catalogue: one fixed example of each."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from streams.events.catalogue import MetaField, catalogue
from streams.events.codec import Codec, event_schema
from streams.events.locator import Locator
from streams.events.model import Assigned, IpcHint, NewEvent, PayloadRef, Root
from streams.events.seal import Sealed
from streams.events.sealer import Sealer
from streams.schema.registry import MemoryRegistry

PRODUCER = "noetl://tenant/acme/org/care/cluster/test/workers/1"
AT = datetime(2026, 5, 16, 12, 34, 56, 789000, tzinfo=UTC)
SHA256 = "ab" * 32
ASSIGNED = Assigned(seq=1, position=1, stream_version=1, ingest_time=AT, chain="00" * 32)
TYPES = tuple(catalogue().types)
NATIVELY = ContextVar("natively", default=False)
"""Whether `sealed` may use the native sealer; see the fixture `either_sealer`."""
_META = {"id": "7001", "int": 3, "text": "some text", "bool": True, "digest": "cd" * 32}
_TIME = "2026-05-16T12:34:56.789Z"
_COLUMNS = {"node_name": "load", "node_type": "tool", "status": "completed", "error": "it broke"}
_DATA = {"rows": 3, "name": "Zoë", "ratio": 0.5, "none": None, "list": [1, "2", False]}


@lru_cache
def codec() -> Codec:
    """Return a codec that writes the pinned schema id, without a registry behind it."""
    return Codec(100001, event_schema(), MemoryRegistry())


def payload(tenant: str = "acme", organization: str = "care", **changes: Any) -> PayloadRef:
    """Return a reference that keeps the rules."""
    fields: dict[str, Any] = {
        "uri": str(Locator.payload(tenant, organization, SHA256)),
        "sha256": SHA256,
        "media_type": "application/vnd.apache.arrow.stream",
        "byte_length": 4096,
    }
    return PayloadRef(**{**fields, **changes})


def full_payload() -> PayloadRef:
    """Return a reference with every optional field, the hint included."""
    hint = IpcHint("node-1", "/noetl-7001", "ef" * 32, AT)
    return payload(row_count=10, schema_digest="ef" * 32, compression="zstd", ipc=hint)


def example(type: str, **changes: Any) -> NewEvent:
    """Return the fixed example of a type: everything it may carry is there."""
    kind = catalogue().types[type]
    fields: dict[str, Any] = {
        "tenant_id": "acme",
        "organization_id": "care",
        "idempotency_key": f"example/{type}",
        "event_time": AT,
        "causation_id": 41,
        "parent_execution_id": 42,
        "catalog_id": 43,
        "current_index": 2,
        "correlation_id": "order-9",
        "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "meta": {field.name: _example_value(field) for field in kind.meta.values()},
        "payload_ref": None if kind.payload == "none" else full_payload(),
        **{k: v for k, v in _COLUMNS.items() if k != "error" or k in kind.user_data},
        **{name: _DATA for name in kind.user_data if name != "error"},
    }
    return NewEvent(type=type, root=Root(kind.root, 1001), **{**fields, **changes})


def sealed(event: NewEvent, event_id: int = 5001, producer: str = PRODUCER) -> Sealed:
    """Seal an event with a fixed id and producer."""
    return sealer(producer, NATIVELY.get())(event, event_id)


@lru_cache
def sealer(producer: str = PRODUCER, natively: bool = False) -> Sealer:
    """Return a sealer of a producer."""
    return Sealer(producer=producer, codec=codec(), catalogue=catalogue(), natively=natively)


def _example_value(field: MetaField) -> object:
    if field.kind == "choice":
        return field.choices[0]
    return _TIME if field.kind == "time" else _META[field.kind]
