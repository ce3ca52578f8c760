"""Content of the fact topics: the newest value of each key, and a checksum over all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from blake3 import blake3

from streams.facts.model import TOPICS
from streams.kafka.event_reader import EventTopicReader

_MODULUS = 1 << 256


class ContentSum:
    """A checksum over keys and values in any order: the sum of their digests."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, key: bytes, value: bytes) -> None:
        """Add a key with its value; each key once."""
        digest = blake3(len(key).to_bytes(4, "big") + key + value).digest()
        self._sum = (self._sum + int.from_bytes(digest, "big")) % _MODULUS

    def hex(self) -> str:
        """Return the checksum of what was added."""
        return f"{self._sum:064x}"


class FactContent:
    """The newest value of each key of some topics, as of the last `read`."""

    def __init__(self, reader: EventTopicReader, topics: tuple[str, ...]) -> None:
        self._reader = reader
        self.values: dict[str, dict[bytes, bytes]] = {topic: {} for topic in topics}
        """By topic and key."""

    async def read(self) -> None:
        """Read what was published since the last call, up to the present end.

        Raises:
            BrokerUnavailable: the broker does not respond in time.
        """
        async for records in self._reader.to_end():
            for record in records:
                values, key = self.values[record.topic], record.key or b""
                if record.value is None:
                    values.pop(key, None)
                else:
                    values[key] = record.value


@asynccontextmanager
async def open_content(
    bootstrap: str, topics: tuple[str, ...] = tuple(TOPICS)
) -> AsyncIterator[FactContent]:
    """Open a reader of fact topics, from their beginning.

    Raises:
        BrokerUnavailable: the broker does not respond.
    """
    async with EventTopicReader(bootstrap, topics) as reader:
        yield FactContent(reader, topics)
