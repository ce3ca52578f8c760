"""Tables in memory, for tests, `try` and the simulator; a second instance has lost them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streams.kafka.tables.port import Changes


class MemoryTables:
    """Tables by partition and name."""

    def __init__(self, partitions: int = 1) -> None:
        self.owned = frozenset(range(partitions))
        self._values: dict[tuple[int, str], dict[bytes, bytes]] = {}

    async def write(self, partition: int, changes: Changes) -> None:
        """Write changes."""
        for table, values in changes.items():
            stored = self._values.setdefault((partition, table), {})
            for key, value in values.items():
                if value is None:
                    stored.pop(key, None)
                else:
                    stored[key] = value

    def clear(self, table: str) -> None:
        """Delete all rows of one table."""
        for partition in self.owned:
            self._values.pop((partition, table), None)

    def read(self, partition: int, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys."""
        stored = self._values.get((partition, table), {})
        return [stored.get(key) for key in keys]

    def scan(self, partition: int, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key and value of a partition."""
        yield from list(self._values.get((partition, table), {}).items())
