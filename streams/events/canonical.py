"""Canonical JSON of an envelope, for checksums.

The envelope has no floats and only ASCII keys, so orjson's sorted output equals RFC 8785; a
test compares it with the rfc8785 package. 64-bit ids are strings. Absent fields are omitted,
so a field added later does not change an old checksum.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from blake3 import blake3

IDS = (
    "event_id",
    "root_id",
    "execution_id",
    "parent_execution_id",
    "catalog_id",
    "causation_id",
)
NOT_SEMANTIC = ("event_id", "event_time", "producer", "trace", "causation_id")
"""Fields that may differ between duplicates of an event; the IPC hint may, too."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def canonical(value: object) -> bytes:
    """Return the canonical JSON of `value`."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def canonical_fields(
    record: Mapping[str, Any], meta: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the Avro record of an envelope in its canonical JSON shape.

    Passing `meta` avoids parsing it again.
    """
    fields = {name: value for name, value in record.items() if value is not None}
    fields.pop("checksum", None)
    for name in IDS:
        if name in fields:
            fields[name] = str(fields[name])
    fields["event_time"] = utc_text(fields["event_time"])
    fields["meta"] = orjson.loads(fields["meta"]) if meta is None else dict(meta)
    if (reference := fields.get("payload_ref")) is not None:
        fields["payload_ref"] = canonical_reference(reference)
    return fields


def canonical_reference(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload reference in its canonical JSON shape."""
    fields = {name: value for name, value in reference.items() if value is not None}
    if (hint := fields.get("ipc")) is not None:
        fields["ipc"] = {**hint, "valid_until": utc_text(hint["valid_until"])}
    return fields


def checksum(fields: Mapping[str, Any]) -> str:
    """Return the BLAKE3 of canonical fields."""
    return blake3(canonical(fields)).hexdigest()


def semantic_digest(fields: Mapping[str, Any]) -> bytes:
    """Return a digest that events with the same idempotency key must share."""
    content = dict(fields)
    for name in NOT_SEMANTIC:
        content.pop(name, None)
    if (reference := content.get("payload_ref")) is not None:
        content["payload_ref"] = {k: v for k, v in reference.items() if k != "ipc"}
    return blake3(canonical(content)).digest()


def millis(at: datetime) -> int:
    """Return `at` in whole milliseconds since 1970, without float arithmetic."""
    return (at - EPOCH) // _MILLISECOND


def from_millis(value: int) -> datetime:
    """Return the UTC time of `value` milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=value)


def utc_text(value: int) -> str:
    """Format milliseconds since 1970 as UTC text."""
    return f"{_second_text(value // 1000)}.{value % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    return f"{from_millis(second * 1000):%Y-%m-%dT%H:%M:%S}"
