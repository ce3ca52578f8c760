"""A bundle as a stored log, so that replay reads it like the database."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Root
from streams.projector.rows import SnapshotRow
from streams.replay.bundle.archive import whole
from streams.replay.bundle.file import BundleFile, Segment
from streams.replay.bundle.records import records
from streams.replay.port import LogHead, StoredEvent

_CACHED = 2


class BundleLog:
    """Reads events from an open bundle; the last segments read stay in memory."""

    def __init__(self, bundle: BundleFile, codec: Codec) -> None:
        self._bundle, self._codec = bundle, codec
        self._cached: dict[str, list[StoredEvent]] = {}

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root."""
        found = self._bundle.execution(root.id) if root.type == "execution" else None
        if found is None:
            return None
        return LogHead(self._bundle.manifest.scope, found.seq, bytes.fromhex(found.chain))

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`."""
        found: list[StoredEvent] = []
        segments = self._segments(root)
        at = max(0, bisect_right(segments, after_seq + 1, key=lambda one: one.first_seq) - 1)
        for segment in segments[at:]:
            if len(found) >= limit or segment.first_seq > through_seq:
                break
            found += [one for one in self._read(segment) if after_seq < one.seq <= through_seq]
        return found[:limit]

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return the place of an event in its root; its envelopes are decoded to find it."""
        for one in self._events(root):
            try:
                await self._codec.learn(one.envelope)
                if self._codec.record(one.envelope)["event_id"] == event_id:
                    return one.seq
            except PoisonRecord:
                continue  # it is reported when it is verified
        return None

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return the last place that was stored at `at` or before."""
        moment = at.astimezone(UTC).replace(tzinfo=None)
        return self._last(root, lambda one: one.ingest_time <= moment)

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return None: bundles have no snapshots, so that every event is read."""
        return None

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return the last place of a root at or below a position of the whole log."""
        return self._last(root, lambda one: one.position <= position)

    def _last(self, root: Root, is_within: Callable[[StoredEvent], bool]) -> int:
        """Return the place of the last event for which a condition holds; it never holds again."""
        found = 0
        for segment in self._segments(root):
            stored = self._read(segment)
            if not stored or not is_within(stored[0]):
                break
            found = next(one.seq for one in reversed(stored) if is_within(one))
        return found

    def _events(self, root: Root) -> Iterator[StoredEvent]:
        for segment in self._segments(root):
            yield from self._read(segment)

    def _segments(self, root: Root) -> Sequence[Segment]:
        return self._bundle.segments.get(root.id, ()) if root.type == "execution" else ()

    def _read(self, segment: Segment) -> list[StoredEvent]:
        name = segment.place.name
        if (found := self._cached.get(name)) is None:
            data = whole(self._bundle.file, segment.place)
            found = list(records(data, name, segment.first_seq))
            if len(self._cached) >= _CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[name] = found
        return found
