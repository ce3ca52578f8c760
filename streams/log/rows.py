"""Conversion between sealed events and database rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import asyncpg

from streams.events.model import Assigned
from streams.events.seal import Sealed

Row = tuple[object, ...]

_BEFORE_CLAIM = (
    "root_type",
    "root_id",
    "event_id",
    "tenant_id",
    "organization_id",
    "parent_execution_id",
    "catalog_id",
    "stream_id",
    "aggregate_type",
    "aggregate_id",
    "event_type",
    "schema_name",
    "schema_version",
    "event_time",
    "producer",
    "causation_id",
    "correlation_id",
    "idempotency_key",
)
_AFTER_CLAIM = (
    "node_name",
    "node_type",
    "status",
    "error",
    "current_index",
    "current_item",
    "meta",
    "context",
    "result",
)


def new_event_row(sealed: Sealed, batch: int) -> Row:
    """Return `sealed` as the database's composite type `noetl.new_event`."""
    record, kind = sealed.record, sealed.kind
    return (
        batch,
        *[record[name] for name in _BEFORE_CLAIM],
        sealed.claim,
        *[record[name] for name in _AFTER_CLAIM],
        sealed.reference,
        record["trace"],
        record["checksum"],
        sealed.digest,
        sealed.envelope,
        sealed.expected_version,
        kind.ends,
        kind.reopens,
        kind.after_end,
    )


def new_event_rows(batches: Sequence[Sequence[Sealed]]) -> list[Row]:
    """Return the rows of `batches`, numbered from 0."""
    return [
        new_event_row(sealed, number) for number, batch in enumerate(batches) for sealed in batch
    ]


def assigned(row: asyncpg.Record) -> Assigned:
    """Return the fields that the database assigned to the event in `row`."""
    return Assigned(
        seq=row["seq"],
        position=row["position"],
        stream_version=row["stream_version"],
        ingest_time=row["ingest_time"].replace(tzinfo=UTC),
        chain=row["chain"].hex(),
    )
