"""Port of the key-value store of playbooks, and its memory adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streams.events.model import Json


@dataclass(frozen=True, slots=True)
class KvBucket:
    """A bucket of one tenant's organization."""

    tenant_id: str
    organization_id: str
    name: str


@dataclass(frozen=True, slots=True)
class KvEntry:
    """A value and the number of times its key was written."""

    value: Json
    revision: int


class KvStore(Protocol):
    """Stores small values by bucket and key."""

    async def get(self, bucket: KvBucket, key: str) -> KvEntry | None:
        """Return the value of a key; None: there is none, or it expired.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    async def put(
        self, bucket: KvBucket, key: str, value: Json, *, by: str, ttl_s: float | None
    ) -> int:
        """Store a value and return its revision; a second put `by` the same call changes nothing.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    async def delete(self, bucket: KvBucket, key: str) -> bool:
        """Delete a key; return whether it existed.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...

    async def keys(self, bucket: KvBucket) -> Sequence[str]:
        """Return the keys of a bucket in order.

        Raises:
            Unavailable: the store cannot be reached.
        """
        ...


@dataclass(slots=True)
class MemoryKv:
    """Values in this process; nothing expires."""

    values: dict[tuple[KvBucket, str], tuple[KvEntry, str]] = field(default_factory=dict)

    async def get(self, bucket: KvBucket, key: str) -> KvEntry | None:
        """Return the value of a key."""
        found = self.values.get((bucket, key))
        return None if found is None else found[0]

    async def put(
        self, bucket: KvBucket, key: str, value: Json, *, by: str, ttl_s: float | None
    ) -> int:
        """Store a value and return its revision."""
        known = self.values.get((bucket, key))
        if known is not None and known[1] == by:
            return known[0].revision
        revision = 1 if known is None else known[0].revision + 1
        self.values[bucket, key] = (KvEntry(value, revision), by)
        return revision

    async def delete(self, bucket: KvBucket, key: str) -> bool:
        """Delete a key; return whether it existed."""
        return self.values.pop((bucket, key), None) is not None

    async def keys(self, bucket: KvBucket) -> Sequence[str]:
        """Return the keys of a bucket in order."""
        return sorted(key for known, key in self.values if known == bucket)
