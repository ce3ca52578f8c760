"""The projector: a batch of records becomes rows in one transaction, then is acknowledged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from streams.envelope.codec import Codec
from streams.envelope.model import Event, Root
from streams.errors import PoisonRecord, Unavailable
from streams.feed.port import Feed, Place, Record
from streams.log.port import EventStore
from streams.mirror.records import event_of_record
from streams.projector.port import Checkpoint, ProjectionStore
from streams.projector.rows import Changes
from streams.projector.views import ROOTS, Views

logger = logging.getLogger(__name__)
PROJECTION = "seen"
_LONGEST_PAUSE_S = 5.0
SetAside = Callable[[Record, str], Awaitable[None]]


class Projector:
    """Reads the mirrored events of executions and of the catalog. Driven by its feed."""

    def __init__(
        self,
        feed: Feed,
        log: EventStore,
        store: ProjectionStore,
        codec: Codec,
        *,
        shard_id: str,
        topic_ids: Mapping[str, str],
        set_aside: SetAside | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._feed, self._store, self._codec = feed, store, codec
        self._views = Views(log)
        self._shard_id, self._topic_ids = shard_id, topic_ids
        self._set_aside, self._pause = set_aside, pause

    async def run(self, stop: asyncio.Event) -> None:
        """Project until told to stop."""
        while not stop.is_set():
            await self.handle(await self._feed.next_batch())

    async def handle(self, batch: Mapping[Place, list[Record]]) -> None:
        """Project one batch: decode, fold, save, acknowledge, in that order.

        While the log or the tables cannot be reached the batch is held: it is folded once
        and saved again and again.
        """
        if not batch:
            return
        roots, checkpoints = await self._decode(batch)
        changes = Changes()
        for root, events in roots.items():
            await self._patiently(partial(self._views.absorb, root, events, changes))
        await self._patiently(partial(self._store.save, changes, checkpoints))
        self._feed.acknowledge(record for records in batch.values() for record in records)

    async def _decode(
        self, batch: Mapping[Place, list[Record]]
    ) -> tuple[dict[Root, list[Event]], list[Checkpoint]]:
        roots: dict[Root, list[Event]] = {}
        checkpoints = []
        for place, records in batch.items():
            last = 0
            for record in records:
                event = await self._event(record)
                if event is not None:
                    roots.setdefault(event.root, []).append(event)
                    last = event.position
            checkpoints.append(self._checkpoint(place, records[-1].offset + 1, last))
        return roots, checkpoints

    async def _event(self, record: Record) -> Event | None:
        """Read the record; one that is no event is set aside, and the log still has the truth."""
        try:
            event = await event_of_record(
                record.value, record.headers, record.timestamp_ms, self._codec
            )
        except PoisonRecord as error:
            logger.error("%s offset %d is set aside: %s", record.place, record.offset, error)
            if self._set_aside is not None:
                await self._set_aside(record, str(error))
            return None
        return event if event.root.type in ROOTS else None

    def _checkpoint(self, place: Place, next_offset: int, position: int) -> Checkpoint:
        return Checkpoint(
            projection=PROJECTION,
            shard_id=self._shard_id,
            topic=place.topic,
            topic_id=self._topic_ids.get(place.topic, ""),
            partition=place.partition,
            next_offset=next_offset,
            last_position=position,
        )

    async def _patiently(self, attempt: Callable[[], Awaitable[None]]) -> None:
        pause_s = 0.05
        while True:
            try:
                return await attempt()
            except Unavailable as error:
                logger.warning("waiting %.2f s: %s", pause_s, error)
                await self._pause(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
