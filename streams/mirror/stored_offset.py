"""The offset that Connect has stored for the mirror, read from its topic."""

from __future__ import annotations

import asyncio
from typing import Literal

import orjson

from streams.errors import StreamsError
from streams.kafka.event_reader import EventTopicReader
from streams.mirror.hanging import OFFSETS_TOPIC
from streams.mirror.setup import MIRROR

_PATIENCE_S = 3.0
_SETTLE_COUNT, _SETTLE_S = 10, 0.1
_TAIL_COUNT = 2000


class StoredOffset:
    """Follows what Connect has stored for the mirror, without Connect: it may be down.

    Its REST interface would read the whole topic anew for each question, too.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._reader: EventTopicReader | None = None
        self.last: int | None = None

    async def reach(self, lsn: int | None) -> int | None:
        """Return the newest LSN that the mirror has stored, given a moment to reach `lsn`.

        Kafka acknowledges a transaction before its marker is written everywhere, so Postgres
        may know of an offset a little earlier than readers of its topic.
        """
        stored = await self.read()
        for _ in range(_SETTLE_COUNT):
            if stored is None or lsn is None or stored >= lsn:
                break
            await asyncio.sleep(_SETTLE_S)
            stored = await self.read()
        return stored

    async def read(self) -> int | None:
        """Return the newest LSN that the mirror has stored; None if there is none."""
        try:
            if self._reader is None:
                await self._open(start=_TAIL_COUNT)
                # The topic's others may have written since; then it is further up.
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
            self._bootstrap, [OFFSETS_TOPIC], start=start, timeout_s=_PATIENCE_S
        )
        self._reader = await reader.__aenter__()

    async def _advance(self) -> bool:
        """Read on to the end; return whether there was anything of the mirror's."""
        assert self._reader is not None
        found = False
        async for batch in self._reader.to_end(timeout_s=_PATIENCE_S):
            for record in batch:
                if record.key and orjson.loads(record.key)[0] == MIRROR:
                    found = True
                    self.last = stored_lsn(record.value)
        return found


def stored_lsn(value: bytes | None) -> int | None:
    """Return how far a stored offset of Debezium's has come; None where it was deleted."""
    if not value:
        return None
    offset = orjson.loads(value)
    places = [offset.get(key) for key in ("lsn", "lsn_proc", "lsn_commit")]
    return max((int(place) for place in places if place is not None), default=None)
