"""The log with its archives: what left the log is read from the payload store."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Root
from streams.payload.content import name
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.projector.rows import SnapshotRow
from streams.replay.bundle.errors import DamagedBundle
from streams.replay.bundle.records import records
from streams.replay.port import LogHead, LogSource, StoredEvent, StoredLog
from streams.retention.errors import DamagedArchive
from streams.retention.port import SEGMENT_TYPE, ArchivedRoot, ArchiveIndex, OpenStore, Piece


class SegmentReader:
    """Reads pieces of archives; the last segment stays in memory."""

    def __init__(self, open_store: OpenStore) -> None:
        self._open_store = open_store
        self._last: tuple[str, bytes] = ("", b"")

    async def read(self, root: ArchivedRoot, piece: Piece) -> list[StoredEvent]:
        """Return the events of a piece.

        Raises:
            DamagedArchive: the object is missing or not what was written.
            Unavailable: the payload store cannot be reached.
        """
        scope = root.scope
        ref = name(scope, piece.segment, piece.segment_bytes, media_type=SEGMENT_TYPE)
        if self._last[0] != ref.uri:
            try:
                async with self._open_store() as store:
                    self._last = (ref.uri, await store.get(ref))
            except (PayloadMissing, PayloadCorrupt) as error:
                why = "it is missing" if isinstance(error, PayloadMissing) else "it was changed"
                raise DamagedArchive(ref.uri, why) from error
        data = self._last[1][piece.offset : piece.offset + piece.byte_length]
        try:
            return list(records(data, f"execution {root.execution_id}", piece.first_seq))
        except DamagedBundle as error:
            raise DamagedArchive(ref.uri, f"{error.entry}: {error.what}") from error


class ArchivedPages:
    """Reads archived executions as they were stored."""

    def __init__(self, index: ArchiveIndex, segments: SegmentReader) -> None:
        self._index, self._segments = index, segments

    async def find(self, root: Root) -> ArchivedRoot | None:
        """Return where a root's events are; None if it is not archived."""
        return await self._index.find(root.id) if root.type == "execution" else None

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`; none if it is not archived."""
        archived, found = await self.find(root), list[StoredEvent]()
        if archived is None:
            return found
        pieces = archived.pieces
        at = max(0, bisect_right(pieces, after_seq + 1, key=lambda one: one.first_seq) - 1)
        for piece in pieces[at:]:
            if len(found) >= limit or piece.first_seq > through_seq:
                break
            events = await self._segments.read(archived, piece)
            found += [one for one in events if after_seq < one.seq <= through_seq]
        return found[:limit]

    async def events(self, root: Root) -> AsyncIterator[StoredEvent]:
        """Yield all events of a root."""
        if (archived := await self.find(root)) is not None:
            for piece in archived.pieces:
                for one in await self._segments.read(archived, piece):
                    yield one

    async def last(self, root: Root, is_within: Callable[[StoredEvent], bool]) -> int:
        """Return the place of the last event for which a condition holds; it never holds again."""
        seq = 0
        async for one in self.events(root):
            if not is_within(one):
                break
            seq = one.seq
        return seq


class ArchivedLog:
    """A stored log that also has the executions that were archived from it.

    The log is asked first, so that reading it costs nothing more, and a replay that runs
    while its execution is archived goes on in the archive.
    """

    def __init__(
        self, log: StoredLog, index: ArchiveIndex, open_store: OpenStore, codec: Codec
    ) -> None:
        self._log, self._codec = log, codec
        self._archive = ArchivedPages(index, SegmentReader(open_store))

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root, and where its events are."""
        found = await self._log.head(root)
        if found is None or await self._archive.find(root) is None:
            return found
        return replace(found, source=LogSource.ARCHIVE)

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`."""
        found = await self._log.page(
            root, after_seq=after_seq, through_seq=through_seq, limit=limit
        )
        if found or after_seq >= through_seq:
            return found
        return await self._archive.page(
            root, after_seq=after_seq, through_seq=through_seq, limit=limit
        )

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return the place of an event in its root; those of an archive are decoded to find it."""
        found = await self._log.seq_of_event(root, event_id)
        if found is not None:
            return found
        async for one in self._archive.events(root):
            try:
                await self._codec.learn(one.envelope)
                if self._codec.record(one.envelope)["event_id"] == event_id:
                    return one.seq
            except PoisonRecord:
                continue  # it is reported when it is verified
        return None

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return the last place that was stored at `at` or before."""
        if found := await self._log.seq_at_time(root, at):
            return found
        moment = at.astimezone(UTC).replace(tzinfo=None)
        return await self._archive.last(root, lambda one: one.ingest_time <= moment)

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return the newest snapshot of a root at or below a place; the tables keep them."""
        return await self._log.snapshot(root, through_seq)

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return the last place of a root at or below a position of the whole log."""
        if found := await self._log.seq_at_position(root, position):
            return found
        return await self._archive.last(root, lambda one: one.position <= position)
