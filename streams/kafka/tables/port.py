"""The port of an agent's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from streams.errors import Unavailable

Changes = Mapping[str, Mapping[bytes, bytes | None]]
"""New values by table and key; None deletes."""


class TablesUnavailable(Unavailable):
    """A changelog could not be written; writing the same values again is safe."""

    dependency = "Kafka"


class PartitionLost(Exception):
    """The partition was revoked: its next owner receives the unacknowledged records."""


class RowNotHere(Exception):
    """Another process has the row's partition."""


class StateTables(Protocol):
    """Tables of bytes, by partition of the topic that their agent reads.

    A write is durable in the changelog before it is visible here, and the changes of all
    tables of a partition are written together or not at all.
    """

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that can be read and written."""
        ...

    async def write(self, partition: int, changes: Changes) -> None:
        """Write changes, and return once they are durable.

        Raises:
            PartitionLost: another process may own the partition; what was not written is read
                from the log when it is assigned again.
            TablesUnavailable: the changelog cannot be written now.
        """
        ...

    def read(self, partition: int, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys, None for those that do not exist."""
        ...

    def scan(self, partition: int, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key and value of a partition."""
        ...
