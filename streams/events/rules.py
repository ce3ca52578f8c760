"""Validation of events before sealing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from math import isfinite
from urllib.parse import quote

from streams.events.catalogue import Catalogue, EventType, MetaField
from streams.events.errors import (
    BadField,
    ForeignPayload,
    MissingField,
    MutablePayload,
    NotUtc,
    UnknownSchema,
)
from streams.events.fast_check import certainly_valid
from streams.events.limits import (
    MAX_ID,
    MAX_KEY_CHARS,
    MAX_NAME_CHARS,
    MAX_SAFE_INT,
    MAX_SEGMENT_CHARS,
)
from streams.events.locator import SCHEME, BadLocator, Locator, parse
from streams.events.model import IpcHint, NewEvent, PayloadRef, Root
from streams.events.text import UNSTORABLE, UNSTORABLE_OR_CONTROL
from streams.segments import wrong_segment

MAX_DEPTH = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TIME_EXAMPLE = "2026-05-16T12:34:56.789Z"
_NO_OFFSET = timedelta(0)
_PAYLOAD_PATH = "/payloads/sha256/"


def check(event: NewEvent, catalogue: Catalogue) -> EventType:
    """Return the type of `event` if it is valid.

    Raises:
        BadEvent: with the field that breaks a rule.
    """
    kind = catalogue.types.get(event.type) if type(event.type) is str else None
    if kind is None or not certainly_valid(event, kind):
        kind = _check_each_field(event, catalogue)
    _check_payload(event, kind)
    return kind


def _check_each_field(event: NewEvent, catalogue: Catalogue) -> EventType:
    """Check every field separately, to report the invalid one."""
    for name in ("type", "tenant_id", "organization_id", "idempotency_key"):
        if not getattr(event, name):
            raise MissingField(str(event.type or "event"), name)
    if not isinstance(event.type, str):
        raise BadField("event", "type", f"is {event.type!r}, not text")
    kind = catalogue.types.get(event.type)
    if kind is None:
        why = "is not in the event catalogue (see docs/events.md)"
        raise UnknownSchema(event.type, "event_type", why)
    if event.schema_version not in (None, kind.version):
        why = f"is {event.schema_version}; this program writes version {kind.version}"
        raise UnknownSchema(event.type, "schema_version", why)
    _check_identity(event, kind)
    _check_columns(event, kind)
    _check_meta(event, kind)
    _check_user_data(event, kind)
    return kind


def _check_identity(event: NewEvent, kind: EventType) -> None:
    if not isinstance(event.root, Root):
        raise BadField(event.type, "root", f"is {event.root!r}, not a Root")
    if event.root.type != kind.root:
        raise BadField(event.type, "root", f"is of type {event.root.type}, not {kind.root}")
    for name, number in (
        ("root_id", event.root.id),
        ("causation_id", event.causation_id),
        ("parent_execution_id", event.parent_execution_id),
        ("catalog_id", event.catalog_id),
    ):
        if number is None and name != "root_id":
            continue
        if type(number) is not int or not 0 < number <= MAX_ID:
            raise BadField(event.type, name, f"is {number!r}, not a positive 63-bit id")
    _check_scope(event.type, "tenant_id", event.tenant_id)
    _check_scope(event.type, "organization_id", event.organization_id)
    _check_text(event.type, "idempotency_key", event.idempotency_key, MAX_KEY_CHARS)
    _check_text(event.type, "correlation_id", event.correlation_id, MAX_KEY_CHARS)
    _check_text(event.type, "trace", event.trace, MAX_NAME_CHARS)
    check_utc(event.type, "event_time", event.event_time)
    expected = event.expected_version
    if expected is not None and (type(expected) is not int or not 0 <= expected <= MAX_ID):
        why = f"is {expected!r}, not a version; 0 means a new stream"
        raise BadField(event.type, "expected_version", why)


def _check_columns(event: NewEvent, kind: EventType) -> None:
    for name in kind.columns:
        if not getattr(event, name):
            raise MissingField(event.type, name)
    for name in ("node_name", "node_type", "status"):
        _check_text(event.type, name, getattr(event, name), MAX_NAME_CHARS)
    if event.error is not None and not isinstance(event.error, str):
        raise BadField(event.type, "error", f"is {event.error!r}, not text")
    index = event.current_index
    if index is not None and (type(index) is not int or not 0 <= index <= MAX_SAFE_INT):
        raise BadField(event.type, "current_index", f"is {index!r}, not an index")


def _check_meta(event: NewEvent, kind: EventType) -> None:
    meta = event.meta
    if not isinstance(meta, Mapping):
        raise BadField(event.type, "meta", f"is {meta!r}, not routing values by name")
    if not kind.required_meta <= meta.keys():
        name = min(kind.required_meta - meta.keys())
        raise MissingField(event.type, f"meta.{name}")
    for name, value in meta.items():
        field = kind.meta.get(name)
        if field is None:
            why = f"is not a routing value of this type; it has {sorted(kind.meta) or 'none'}"
            raise BadField(event.type, f"meta.{name}", why)
        if (wrong := _wrong(field, value)) is not None:
            raise BadField(event.type, f"meta.{name}", wrong)


def _wrong(field: MetaField, value: object) -> str | None:
    if field.kind == "int":
        fits = type(value) is int and -MAX_SAFE_INT <= value <= MAX_SAFE_INT
        return None if fits else f"is {value!r}, not a whole number below 2^53"
    if field.kind == "bool":
        return None if type(value) is bool else f"is {value!r}, not true or false"
    if not isinstance(value, str):
        return f"is {value!r}, not text (64-bit ids are text in JSON)"
    if field.kind == "choice":
        return None if value in field.choices else f"is {value!r}, not one of {field.choices}"
    if field.kind == "id":
        return None if _is_id(value) else f"is {value!r}, not a 63-bit id"
    if field.kind == "digest":
        return None if _DIGEST.fullmatch(value) else f"is {value!r}, not 64 hex digits"
    if field.kind == "time":
        return None if _is_time(value) else f"is {value!r}, not a time like {_TIME_EXAMPLE}"
    if not _is_plain(value, MAX_KEY_CHARS):
        return (
            f"must be 1 to {MAX_KEY_CHARS} characters without control characters or lone surrogates"
        )
    return None


def _is_time(text: str) -> bool:
    """Return whether `text` is a time in its canonical format, as claims require."""
    try:
        return _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _check_user_data(event: NewEvent, kind: EventType) -> None:
    for name in ("context", "result", "current_item", "error"):
        value = getattr(event, name)
        if value is None:
            continue
        if name not in kind.user_data:
            raise BadField(event.type, name, "the catalogue allows no such data for this type")
        check_json(event.type, name, value)


def _check_payload(event: NewEvent, kind: EventType) -> None:
    ref = event.payload_ref
    if ref is None:
        if kind.payload == "required":
            raise MissingField(event.type, "payload_ref")
        return
    if kind.payload == "none":
        raise BadField(event.type, "payload_ref", "the catalogue allows no payload for this type")
    if not isinstance(ref, PayloadRef):
        raise BadField(event.type, "payload_ref", f"is {ref!r}, not a PayloadRef")
    check_payload_ref(event.type, event.tenant_id, event.organization_id, ref)


def check_payload_ref(event_type: str, tenant: str, organization: str, ref: PayloadRef) -> None:
    """Reject a reference that is mutable or of another tenant."""
    for name in ("uri", "sha256", "media_type"):
        if not isinstance(text := getattr(ref, name), str):
            raise BadField(event_type, f"payload_ref.{name}", f"is {text!r}, not text")
    if not _DIGEST.fullmatch(ref.sha256):
        raise BadField(event_type, "payload_ref.sha256", f"is {ref.sha256!r}, not 64 hex digits")
    expected = payload_prefix(tenant, organization) + ref.sha256
    if ref.uri != expected:
        if ref.uri.startswith(SCHEME) and ref.uri.endswith(_PAYLOAD_PATH + ref.sha256):
            why = f"is {ref.uri!r}, not below this event's tenant and organization"
            raise ForeignPayload(event_type, "payload_ref.uri", why)
        why = f"is {ref.uri!r}, not the content-addressed {expected}"
        raise MutablePayload(event_type, "payload_ref.uri", why)
    if not ref.media_type:
        raise MissingField(event_type, "payload_ref.media_type")
    for name in ("media_type", "schema_digest", "compression"):
        _check_text(event_type, f"payload_ref.{name}", getattr(ref, name), MAX_NAME_CHARS)
    for name in ("byte_length", "row_count"):
        count = getattr(ref, name)
        if count is None and name == "row_count":
            continue
        if type(count) is not int or not 0 <= count <= MAX_SAFE_INT:
            raise BadField(event_type, f"payload_ref.{name}", f"is {count!r}, not a count")
    if ref.ipc is not None:
        _check_hint(event_type, ref.ipc)


def _check_hint(event_type: str, hint: IpcHint) -> None:
    if not isinstance(hint, IpcHint):
        raise BadField(event_type, "payload_ref.ipc", f"is {hint!r}, not an IpcHint")
    for name in ("node_id", "shm_name", "schema_digest"):
        if not (text := getattr(hint, name)):
            raise MissingField(event_type, f"payload_ref.ipc.{name}")
        _check_text(event_type, f"payload_ref.ipc.{name}", text, MAX_NAME_CHARS)
    check_utc(event_type, "payload_ref.ipc.valid_until", hint.valid_until)


@lru_cache(maxsize=1024)
def payload_prefix(tenant: str, organization: str) -> str:
    return str(Locator.payload(tenant, organization, "0" * 64))[:-64]


def check_utc(event_type: str, field: str, at: datetime) -> None:
    """Reject a time that is not in UTC."""
    if not isinstance(at, datetime):
        raise BadField(event_type, field, f"is {at!r}, not a time")
    if at.utcoffset() != _NO_OFFSET:
        why = f"is {at.isoformat()}, not UTC; use datetime.now(UTC) or .astimezone(UTC)"
        raise NotUtc(event_type, field, why)


def check_json(event_type: str, path: str, value: object, depth: int = 0) -> None:
    """Reject values that JSON or the database cannot represent."""
    if isinstance(value, str):
        # Postgres rejects NUL in text, and in any key or value of a JSON document.
        if not value.isprintable() and UNSTORABLE.search(value):
            why = "contains a NUL or a lone surrogate, which Postgres rejects; use a payload"
            raise BadField(event_type, path, why)
    elif depth > MAX_DEPTH:
        why = f"is nested more than {MAX_DEPTH} levels deep; store it as a payload"
        raise BadField(event_type, path.partition(".")[0].partition("[")[0], why)
    elif isinstance(value, float):
        if not isfinite(value):
            raise BadField(event_type, path, f"is {value}, which is not valid JSON; use null")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or UNSTORABLE.search(key):
                raise BadField(event_type, path, f"has the key {key!r}, which is not text")
            check_json(event_type, f"{path}.{key}", inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            check_json(event_type, f"{path}[{index}]", inner, depth + 1)
    elif value is not None and not isinstance(value, int):
        kind = type(value).__name__
        raise BadField(event_type, path, f"is a {kind}; encode decimals and times as text")


def _check_scope(event_type: str, field: str, name: str) -> None:
    """Reject a tenant or organization that is not a valid locator segment."""
    _check_text(event_type, field, name, MAX_NAME_CHARS)
    if (wrong := wrong_segment(name)) is not None:
        raise BadField(event_type, field, wrong)
    if len(quote(name, safe="")) > MAX_SEGMENT_CHARS:
        why = f"must have at most {MAX_SEGMENT_CHARS} characters once it is percent-encoded"
        raise BadField(event_type, field, why)


def _check_text(event_type: str, field: str, text: str | None, limit: int) -> None:
    if text is None:
        return
    if not isinstance(text, str):
        raise BadField(event_type, field, f"is {text!r}, not text")
    if not _is_plain(text, limit):
        why = f"must be 1 to {limit} characters without control characters or lone surrogates"
        raise BadField(event_type, field, why)


@lru_cache(maxsize=1024)
def check_producer(producer: str) -> None:
    """Reject an invalid producer.

    Raises:
        BadLocator: it is not a locator, or that of a result.
    """
    if not isinstance(parse(producer), Locator):
        raise BadLocator("it", "is a result, not a producer", producer)


def _is_plain(text: str, limit: int) -> bool:
    # Printable text is valid; only the rest needs the slower search.
    return 0 < len(text) <= limit and (text.isprintable() or not UNSTORABLE_OR_CONTROL.search(text))


def _is_id(text: str) -> bool:
    digits = text.isascii() and text.isdigit() and text[0] != "0"
    return digits and (len(text) < 19 or (len(text) == 19 and int(text) <= MAX_ID))
