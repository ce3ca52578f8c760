"""The mirror's source offset, read from Connect's offsets topic."""

from __future__ import annotations

import asyncio
from typing import Literal

import orjson

from streams.errors import StreamsError
from streams.kafka.event_reader import EventTopicReader
from streams.mirror.hanging import OFFSETS_TOPIC
from streams.mirror.setup import MIRROR

_READ_LIMIT_S = 3.0
_SETTLE_COUNT, _SETTLE_S = 10, 0.1
_TAIL_COUNT = 2000


class StoredOffset:
    """Follows the offsets topic directly: Connect may be down.

    Connect's REST API would also read the whole topic for each request.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._reader: EventTopicReader | None = None
        self.last: int | None = None

    async def reach(self, lsn: int | None) -> int | None:
        """Return the mirror's newest stored LSN, waiting briefly for it to reach `lsn`.

        Kafka acknowledges a transaction before its markers are written, so Postgres may have an
        offset slightly earlier than consumers of its topic.
        """
        stored = await self.read()
        for _ in range(_SETTLE_COUNT):
            if stored is None or lsn is None or stored >= lsn:
                break
            await asyncio.sleep(_SETTLE_S)
            stored = await self.read()
        return stored

    async def read(self) -> int | None:
        """Return the mirror's newest stored LSN; None if there is none."""
        try:
            if self._reader is None:
                await self._open(start=_TAIL_COUNT)
                # Other connectors may have written since; then it is further back.
                if not await self._advance():
                    await self.close()
                    await self._open(start="beginning")
            await self._advance()
        except StreamsError:
            await self.close()
            raise
        return self.last

    async def close(self) -> None:
        if self._reader is not None:
            await self._reader.__aexit__()
            self._reader = None

    async def _open(self, *, start: int | Literal["beginning"]) -> None:
        reader = EventTopicReader(
            self._bootstrap, [OFFSETS_TOPIC], start=start, timeout_s=_READ_LIMIT_S
        )
        self._reader = await reader.__aenter__()

    async def _advance(self) -> bool:
        """Read to the end; return whether there was a record of the mirror."""
        assert self._reader is not None
        found = False
        async for batch in self._reader.to_end(timeout_s=_READ_LIMIT_S):
            for record in batch:
                if record.key and orjson.loads(record.key)[0] == MIRROR:
                    found = True
                    self.last = stored_lsn(record.value)
        return found


def stored_lsn(value: bytes | None) -> int | None:
    """Return the LSN of a stored Debezium offset; None if it was deleted."""
    if not value:
        return None
    offset = orjson.loads(value)
    lsns = [offset.get(key) for key in ("lsn", "lsn_proc", "lsn_commit")]
    return max((int(place) for place in lsns if place is not None), default=None)
