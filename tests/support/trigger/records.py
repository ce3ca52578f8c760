"""Trigger records and entries for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

from streams.events.model import PayloadRef
from streams.trigger.core import initialized, rejected
from streams.trigger.port import LedgerEntry, Origin, PlaybookVersion
from streams.trigger.record import Request
from tests.support.events.examples import payload

AT = datetime(2026, 5, 16, 12, 34, 56, tzinfo=UTC)
HELLO = PlaybookVersion(catalog_id=4711, version=2)
_offsets = count()


def origin(topic_id: str = "topic-1", offset: int | None = None, partition: int = 0) -> Origin:
    """Return a place that no other record has, unless given."""
    at = next(_offsets) if offset is None else offset
    return Origin(topic_id, partition, at, "noetl.triggers")


def start(
    execution_id: int, key: str | None = None, at: Origin | None = None, tenant: str = "acme"
) -> LedgerEntry:
    """Return the entry of a record that starts an execution."""
    asked = Request(path="examples/hello", tenant=tenant, organization="care", workload={}, key=key)
    at = at or origin()
    return LedgerEntry(at, initialized(asked, HELLO, at, execution_id=execution_id, now=AT), key)


def refuse(trigger_id: int, at: Origin | None = None) -> LedgerEntry:
    """Return the entry of a record that is rejected."""
    at, kept = at or origin(), payload()
    assert isinstance(kept, PayloadRef)
    event = rejected(
        at,
        "not JSON",
        tenant="acme",
        organization="care",
        trigger_id=trigger_id,
        now=AT,
        record_ref=kept,
    )
    return LedgerEntry(at, event)
