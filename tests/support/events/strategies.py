"""Random events of every type that keep every rule, for hypothesis to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from streams.events.catalogue import EventType, catalogue
from streams.events.locator import Locator
from streams.events.model import IpcHint, NewEvent, PayloadRef, Root
from tests.support.events.examples import TYPES

_TIME = "2026-05-16T12:34:56.789Z"
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


JUNK: list[Any] = [
    None, "", "\x00", "\n", "\ud800", "x" * 201, "x" * 600, "0", "01", "９", "9" * 19, -1, 0, 2**63,
    2**53, True, 1.5, float("nan"), [], {}, {"\x00": 1}, {1: 2}, {"a": float("inf")}, ["\ud800"],
]  # fmt: skip
TIMES = [datetime(2026, 5, 16), datetime(2026, 5, 16, tzinfo=timezone(timedelta(hours=2)))]
NAMES = sorted(f.name for f in fields(NewEvent) if f.name not in ("root", "type", "payload_ref"))


@st.composite
def damaged_events(draw: st.DrawFn) -> NewEvent:
    """An event that kept every rule until one of its values was exchanged."""
    event = draw(new_events())
    where = draw(st.sampled_from([*NAMES, "meta value", "meta key", "root"]))
    junk = draw(st.sampled_from(JUNK))
    if where == "event_time":
        return replace(event, event_time=draw(st.sampled_from(TIMES)))
    if where == "root":
        return replace(event, root=Root(draw(st.sampled_from(["tenant", "moon"])), 1))
    if where == "meta key":
        return replace(event, meta={**event.meta, "surprise": 1})
    if where in ("meta value", "meta"):
        if not event.meta:
            return event
        name = draw(st.sampled_from(sorted(event.meta)))
        return replace(event, meta={**event.meta, name: junk})
    return replace(event, **{where: junk})
