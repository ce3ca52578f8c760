"""Conversion of the database's response to a receipt or an error."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import asyncpg

from streams.errors import Refused
from streams.events.model import Root
from streams.events.seal import Sealed
from streams.log.errors import (
    BadBatch,
    ForeignRoot,
    IdempotencyConflict,
    RootEnded,
    VersionConflict,
)
from streams.log.port import Appended, AppendOutcome, Receipt


def receipt(batch: Sequence[Sealed], rows: Sequence[asyncpg.Record]) -> Receipt:
    """Return the receipt of `batch`.

    Raises:
        Refused: the database refused it; the error has the event and the reason.
    """
    if len(batch) == 1 and len(rows) == 1 and rows[0]["outcome"] == _APPENDED:
        return Receipt((_appended(rows[0]),))
    by_event = {row["event_id"]: row for row in rows}
    for sealed in batch:
        row = by_event.get(sealed.event_id)
        if row is None:
            continue
        if row["outcome"] == "refused":
            raise refusal(sealed, row["reason"], row["found"])
        if row["outcome"] == "claimed":
            return Receipt((), claimed_by=row["stored_id"])
    return Receipt(tuple(_appended(by_event[sealed.event_id]) for sealed in batch))


def _appended(row: asyncpg.Record) -> Appended:
    _, _, outcome, stored_id, seq, position, version, ingest_time, chain, _, _ = row.values()
    return Appended(
        stored_id,
        _OUTCOMES[outcome],
        seq,
        position,
        version,
        ingest_time.replace(tzinfo=UTC),
        chain.hex(),
    )


_OUTCOMES = {outcome.value: outcome for outcome in AppendOutcome}
_APPENDED = AppendOutcome.APPENDED.value


def refusal(sealed: Sealed, reason: str, found: str | None) -> Refused:
    """Return the error for the database's `reason`."""
    record = sealed.record
    root = Root(record["root_type"], record["root_id"])
    if reason == "version":
        expected = sealed.expected_version
        return VersionConflict(record["stream_id"], expected=expected or 0, found=int(found or 0))
    if reason == "idempotency":
        return IdempotencyConflict(root, record["idempotency_key"], int(found or 0))
    if reason == "terminal":
        return RootEnded(root, record["event_type"])
    return ForeignRoot(root, "root_type" if reason == "root_type" else "tenant or organization")


def check_batch(batch: Sequence[Sealed]) -> None:
    """Reject a batch that is empty or has a duplicate idempotency key or claim."""
    if not batch:
        raise BadBatch("an append needs at least one event")
    if len(batch) == 1:
        return
    seen = set()
    for sealed in batch:
        root = sealed.root_id
        for field in (("idempotency_key", sealed.idempotency_key), ("claim", sealed.claim)):
            if field[1] is not None and (root, field) in seen:
                raise BadBatch(f"the batch has {field[0]} {field[1]!r} twice for root {root}")
            seen.add((root, field))
