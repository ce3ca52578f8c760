"""Events of every type, made from the catalogue: one fixed example of each, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from streams.envelope.catalogue import EventType, MetaField, catalogue
from streams.envelope.codec import Codec, event_schema
from streams.envelope.locator import Locator
from streams.envelope.model import Assigned, IpcHint, NewEvent, PayloadRef, Root
from streams.envelope.registry import MemoryRegistry
from streams.envelope.seal import Sealed, seal

PRODUCER = "noetl://tenant/acme/org/care/cluster/test/workers/1"
AT = datetime(2026, 5, 16, 12, 34, 56, 789000, tzinfo=UTC)
SHA256 = "ab" * 32
ASSIGNED = Assigned(seq=1, position=1, stream_version=1, ingest_time=AT, chain="00" * 32)
TYPES = tuple(catalogue().types)
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
    return seal(event, event_id=event_id, producer=producer, codec=codec(), catalogue=catalogue())


def _example_value(field: MetaField) -> object:
    if field.kind == "choice":
        return field.choices[0]
    return _TIME if field.kind == "time" else _META[field.kind]


_ids = st.integers(1, 2**63 - 1)
_safe = st.integers(-(2**53) + 1, 2**53 - 1)
_counts = st.integers(0, 2**53 - 1)
_names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
_text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40)
_digests = st.text("0123456789abcdef", min_size=64, max_size=64)
_segments = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_ é/%", min_size=1, max_size=12)
_times = st.datetimes(
    datetime(2000, 1, 1),
    datetime(2100, 1, 1),
    timezones=st.just(UTC),
).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)
_hints = st.builds(
    IpcHint, node_id=_names, shm_name=_names, schema_digest=_digests, valid_until=_times
)


@st.composite
def new_events(draw: st.DrawFn) -> NewEvent:
    """Draw an event of any type that keeps every rule."""
    kind = catalogue().types[draw(st.sampled_from(TYPES))]
    tenant, organization = draw(_segments), draw(_segments)
    ref = None
    if kind.payload == "required" or (kind.payload == "optional" and draw(st.booleans())):
        ref = _draw_payload(draw, tenant, organization)
    return NewEvent(
        type=kind.name,
        root=Root(kind.root, draw(_ids)),
        tenant_id=tenant,
        organization_id=organization,
        idempotency_key=draw(_names),
        event_time=draw(_times),
        correlation_id=draw(st.none() | _names),
        causation_id=draw(st.none() | _ids),
        parent_execution_id=draw(st.none() | _ids),
        catalog_id=draw(st.none() | _ids),
        current_index=draw(st.none() | _counts),
        trace=draw(st.none() | _names),
        meta=_draw_meta(draw, kind),
        payload_ref=ref,
        **_draw_columns(draw, kind),
        **{n: draw(_json) for n in kind.user_data if n != "error"},
    )


def _draw_payload(draw: st.DrawFn, tenant: str, organization: str) -> PayloadRef:
    sha256 = draw(_digests)
    return PayloadRef(
        uri=str(Locator.payload(tenant, organization, sha256)),
        sha256=sha256,
        media_type=draw(_names),
        byte_length=draw(_counts),
        row_count=draw(st.none() | _counts),
        schema_digest=draw(st.none() | _digests),
        compression=draw(st.none() | _names),
        ipc=draw(st.none() | _hints),
    )


def _draw_columns(draw: st.DrawFn, kind: EventType) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for name in ("node_name", "node_type", "status"):
        drawn[name] = draw(_names if name in kind.columns else st.none() | _names)
    if "error" in kind.user_data:
        drawn["error"] = draw(_text.filter(bool) if "error" in kind.columns else st.none() | _text)
    return drawn


def _draw_meta(draw: st.DrawFn, kind: EventType) -> Mapping[str, Any]:
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "id": _ids.map(str),
        "int": _safe,
        "text": _names,
        "bool": st.booleans(),
        "digest": _digests,
        "time": st.just(_TIME),
    }
    return {
        field.name: draw(
            st.sampled_from(field.choices) if field.kind == "choice" else kinds[field.kind]
        )
        for field in kind.meta.values()
        if field.required or draw(st.booleans())
    }
