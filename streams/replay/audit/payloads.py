"""Audit of payloads: each object that events refer to exists, with its SHA-256."""

from __future__ import annotations

from streams.errors import PoisonRecord
from streams.payload.errors import PayloadMissing
from streams.payload.port import PayloadStore
from streams.replay.checks import Check, Status, failed, passed
from streams.replay.payload_index import IndexedPayload, PayloadIndex

PAYLOAD_CHECK = "payloads"


async def payload_check(store: PayloadStore, index: PayloadIndex) -> Check:
    """Read every payload once, in pieces; expired ones may be absent.

    Raises:
        Unavailable: the store is down.
    """
    count = byte_length = expired = wrong = 0
    first = None
    for one in index.payloads():
        try:
            await _read(store, one)
            count, byte_length = count + 1, byte_length + one.byte_length
        except PoisonRecord as error:
            if isinstance(error, PayloadMissing) and index.is_expired(one):
                expired += 1
                continue
            wrong += 1
            first = first or f"{one.event}: {error}"
    if wrong:
        return failed(PAYLOAD_CHECK, f"{wrong} of {count + wrong} objects", first)
    if not count + expired:
        return Check(PAYLOAD_CHECK, Status.NOT_APPLICABLE, "no event refers to one")
    numbers = f"{count} objects, {byte_length} bytes and their SHA-256"
    return passed(PAYLOAD_CHECK, numbers + (f", {expired} expired" if expired else ""))


async def _read(store: PayloadStore, one: IndexedPayload) -> None:
    async for _ in store.fetch(one.ref):
        pass
