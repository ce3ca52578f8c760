"""Tier 1: LRU cache of payloads in this process, bounded by bytes."""

from __future__ import annotations

from cachetools import LRUCache

ENTRY_BYTES = 400
"""Overhead of an entry: key, links, and Python objects."""


class ByteLru:
    """Bytes by key; the least recently used entry is evicted first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._cached: LRUCache[str, bytes] = LRUCache(max_bytes, getsizeof=_entry_bytes)

    @property
    def bytes_in_use(self) -> int:
        """The bytes of all entries."""
        return int(self._cached.currsize)

    def get(self, key: str) -> bytes | None:
        """Return the bytes under `key`, or None."""
        return self._cached.get(key)

    def put(self, key: str, data: bytes) -> None:
        """Store `data`, unless it is so large that it would evict a quarter of the others."""
        if len(data) <= self._max_bytes // 4 and _entry_bytes(data) <= self._max_bytes:
            self._cached[key] = data

    def drop(self, key: str) -> None:
        """Remove the bytes under `key`."""
        self._cached.pop(key, None)


def _entry_bytes(data: bytes) -> int:
    return ENTRY_BYTES + len(data)
