"""Payloads in memory, for tests and simulations."""

from __future__ import annotations

from streams.envelope.model import PayloadRef
from streams.payload.content import check, describe, key_of
from streams.payload.errors import PayloadMissing
from streams.payload.port import Scope


class MemoryPayloadStore:
    """Keeps payloads in a dictionary, which a test may look into and damage."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    async def put(
        self,
        scope: Scope,
        data: bytes,
        *,
        media_type: str,
        row_count: int | None = None,
        schema_digest: str | None = None,
    ) -> PayloadRef:
        """Store `data` and return its reference."""
        ref = describe(
            scope, data, media_type=media_type, row_count=row_count, schema_digest=schema_digest
        )
        self.objects.setdefault(key_of(ref), bytes(data))
        return ref

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked."""
        data = self.objects.get(key_of(ref))
        if data is None:
            raise PayloadMissing(ref.uri)
        return check(ref, data)

    async def exists(self, ref: PayloadRef) -> bool:
        """Say whether the object is there."""
        return key_of(ref) in self.objects

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object; harmless when it is gone."""
        self.objects.pop(key_of(ref), None)
