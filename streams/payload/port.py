"""Port of payload stores."""

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
    """Owner of a payload; nothing is shared across scopes."""

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
    """Stores payload bytes under the hash of their content.

    Storing the same bytes twice is harmless and yields the same reference, so a
    redelivered record never writes a second object. Objects describe their own packing: a
    reference's `compression` is only what its writer requested.
    """

    async def put(
        self, scope: Scope, data: bytes, **described: Unpack[PayloadDescription]
    ) -> PayloadRef:
        """Store `data` and return its reference once it is durable.

        Raises:
            PayloadUnavailable: the store is down; retrying is safe.
        """
        ...

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked against its digest and length.

        Raises:
            PayloadMissing: the object does not exist.
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
        """Store the stream `chunks`, of any size, in constant memory; otherwise like `put`."""
        ...

    def fetch(self, ref: PayloadRef) -> AsyncIterator[bytes]:
        """Yield the bytes behind `ref` in pieces, in constant memory; otherwise like `get`.

        The digest is verified at the end: on PayloadCorrupt, discard all earlier pieces.
        """
        ...

    async def exists(self, ref: PayloadRef) -> bool:
        """Return whether the object exists."""
        ...

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object, if it exists."""
        ...
