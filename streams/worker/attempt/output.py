"""Stores the output rows of a frame."""

from __future__ import annotations

from collections.abc import Sequence

from streams.events.model import Json, PayloadRef
from streams.kafka.work.item import WorkItem
from streams.payload.port import ARROW, PayloadStore, Scope


async def store_rows(
    payloads: PayloadStore, item: WorkItem, rows: Sequence[Json]
) -> PayloadRef | None:
    """Store one Arrow row for each row of the frame; None if no row has output."""
    if all(row is None for row in rows):
        return None
    from streams.payload.arrow.rows import (
        encode_rows,  # a worker that runs only commands does not need it
    )

    encoded = encode_rows(rows)
    return await payloads.put(
        Scope(item.tenant_id, item.organization_id),
        encoded.data,
        media_type=ARROW,
        row_count=encoded.row_count,
        schema_digest=encoded.schema_digest,
    )
