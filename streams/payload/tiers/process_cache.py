"""Tier 1: the payloads this process used last, bounded by their bytes."""

from __future__ import annotations

from collections import OrderedDict

ENTRY_BYTES = 400
"""What an entry takes beside its bytes: key, links, and Python's own."""


class ByteLru:
    """Keeps bytes by key; what was not asked for longest goes first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._kept = max_bytes, OrderedDict[str, bytes]()
        self.bytes_in_use = 0

    def get(self, key: str) -> bytes | None:
        """Return what is kept under `key`, if anything is."""
        data = self._kept.get(key)
        if data is not None:
            self._kept.move_to_end(key)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`; one payload may not push out most of the others, so large ones are not."""
        if len(data) > self._max_bytes // 4:
            return
        self.drop(key)
        self._kept[key] = data
        self.bytes_in_use += ENTRY_BYTES + len(data)
        while self.bytes_in_use > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.bytes_in_use -= ENTRY_BYTES + len(oldest)

    def drop(self, key: str) -> None:
        """Forget what is kept under `key`."""
        if (data := self._kept.pop(key, None)) is not None:
            self.bytes_in_use -= ENTRY_BYTES + len(data)
