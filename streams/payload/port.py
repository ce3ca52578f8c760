"""What the rest of the program needs from a payload store."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol, Required, TypeAlias, TypedDict, Unpack

from streams.events.model import PayloadRef

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

Compression: TypeAlias = Literal["zstd", "lz4", "gzip", "none"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose payload it is; nothing is shared across scopes."""

    tenant_id: str
    organization_id: str


class PayloadDescription(TypedDict, total=False):
    """What a reference says of its payload beside name and length."""

    media_type: Required[str]
    row_count: int | None
    schema_digest: str | None
    compression: Compression | None
    """How it is packed; None, or left out: as the store was set up to."""


class PayloadStore(Protocol):
    """Keeps payload bytes under the hash of their content.

    Storing the same bytes twice is harmless and yields the same reference, so a
    redelivered record never writes a second object. How an object is packed is the object's
    own affair: a reference's `compression` tells what its writer asked for, and no reader
    depends on it.
    """

    async def put(
        self, scope: Scope, data: bytes, **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Store `data` and return its reference once it is durable.

        Raises:
            PayloadUnavailable: the store is down; asking again is safe.
        """
        ...

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked against its digest and length.

        Raises:
            PayloadMissing: there is no such object.
            PayloadCorrupt: the bytes are not those that were stored.
            PayloadUnavailable: the store is down.
        """
        ...

    async def store(
        self,
        scope: Scope,
        chunks: AsyncIterable[bytes],
        **described: Unpack[PayloadDescription],
    ) -> PayloadRef:
        """Store what `chunks` yields, of any size, in little memory; otherwise as `put`."""
        ...

    def fetch(self, ref: PayloadRef) -> AsyncIterator[bytes]:
        """Yield the bytes behind `ref` in pieces, in little memory; otherwise as `get`.

        The digest is known at the end: whoever gets PayloadCorrupt there must drop what came
        before it.
        """
        ...

    async def exists(self, ref: PayloadRef) -> bool:
        """Return whether the object is there."""
        ...

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object; harmless when it is gone."""
        ...
