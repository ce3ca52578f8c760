"""The log as an event store, with decoded events of archived executions, which are verified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence

from streams.events.codec import Codec
from streams.events.model import Event, NewEvent, Root
from streams.log.port import EventStore, Frontier, Receipt
from streams.replay.verified import VerifiedLog
from streams.retention.port import ArchiveIndex, OpenStore
from streams.retention.reading import ArchivedPages, SegmentReader


class ArchivedEventStore:
    """Appends to a log; reads roots and streams from it, and archived ones from their archive.

    Readers of the whole log (`read_log`, `follow`) get only what is in the log.
    """

    def __init__(
        self, log: EventStore, index: ArchiveIndex, open_store: OpenStore, codec: Codec
    ) -> None:
        self._log = log
        self._archive = ArchivedPages(index, SegmentReader(open_store))
        self._verified = VerifiedLog(self._archive, codec)

    def append(self, batch: Sequence[NewEvent]) -> Coroutine[object, object, Receipt]:
        """Append a batch and return once it is durable."""
        return self._log.append(batch)

    async def read_root(
        self, root: Root, *, after_seq: int = 0, through_seq: int | None = None
    ) -> AsyncIterator[Event]:
        """Yield a root's events in `seq` order."""
        is_in_log = False
        async for event in self._log.read_root(root, after_seq=after_seq, through_seq=through_seq):
            is_in_log = True
            yield event
        if not is_in_log:
            async for event in self._archived(root, through_seq):
                if event.seq > after_seq:
                    yield event

    async def read_stream(
        self, root: Root, stream_id: str, *, after_version: int = 0
    ) -> AsyncIterator[Event]:
        """Yield a stream's events in version order."""
        is_in_log = False
        async for event in self._log.read_stream(root, stream_id, after_version=after_version):
            is_in_log = True
            yield event
        if not is_in_log:
            async for event in self._archived(root, None):
                if event.stream_id == stream_id and event.stream_version > after_version:
                    yield event

    async def read_log(
        self, after: Frontier, *, limit: int = 1000
    ) -> tuple[Sequence[Event], Frontier]:
        """Return events after `after` across all roots, and the new frontier."""
        return await self._log.read_log(after, limit=limit)

    def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Yield events of all roots after `after`, and wait for more at the end."""
        return self._log.follow(after)

    async def _archived(self, root: Root, through_seq: int | None) -> AsyncIterator[Event]:
        if (archived := await self._archive.find(root)) is None:
            return
        end = archived.seq if through_seq is None else min(through_seq, archived.seq)
        async for events in self._verified.pages(root, through_seq=end):
            for event in events:
                yield event
