"""A stored log in memory, for unit tests and the simulator: filled as the mirror of a log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime

from streams.events.model import Event, Root
from streams.payload.port import Scope
from streams.projector.rows import SnapshotRow
from streams.replay.organization import LogEnd
from streams.replay.port import LogHead, StoredEvent


class MemoryStoredLog:
    """Stores events in lists, in order of `seq`."""

    def __init__(self) -> None:
        self.stored: dict[Root, list[StoredEvent]] = {}
        self.snapshots: list[SnapshotRow] = []
        self._events: dict[Root, list[Event]] = {}

    def mirror(self, event: Event, envelope: bytes) -> None:
        """Add an event that was appended."""
        self._events.setdefault(event.root, []).append(event)
        self.stored.setdefault(event.root, []).append(
            StoredEvent(
                seq=event.seq,
                position=event.position,
                stream_version=event.stream_version,
                ingest_time=event.ingest_time.replace(tzinfo=None),
                checksum=bytes.fromhex(event.checksum),
                chain=bytes.fromhex(event.chain),
                envelope=envelope,
            )
        )

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root."""
        events = self._events.get(root)
        if not events:
            return None
        last = events[-1]
        scope = Scope(last.tenant_id, last.organization_id)
        return LogHead(scope, last.seq, bytes.fromhex(last.chain))

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`."""
        wanted = [one for one in self.stored[root] if after_seq < one.seq <= through_seq]
        return wanted[:limit]

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return the place of an event in its root."""
        events = self._events.get(root, ())
        return next((one.seq for one in events if one.event_id == event_id), None)

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return the last place that was stored at `at` or before."""
        return bisect_right(self._events[root], at, key=lambda one: one.ingest_time)

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return the newest snapshot of a root at or below a place."""
        found = [one for one in self.snapshots if one.aggregate_id == str(root.id)]
        known = [one for one in found if one.seq <= through_seq]
        return max(known, key=lambda one: one.seq, default=None)

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return the last place of a root at or below a position of the whole log."""
        return bisect_right(self._events[root], position, key=lambda one: one.position)

    async def settled(self) -> LogEnd:
        """Return the end of the log; appends in memory are not concurrent."""
        events = [event for found in self._events.values() for event in found]
        return LogEnd(
            max((event.position for event in events), default=0),
            max((event.ingest_time for event in events), default=datetime.now(UTC)),
        )

    async def executions(self, scope: Scope, *, after_id: int, limit: int) -> Sequence[int]:
        """Return ids of executions above `after_id`, in order."""
        found = [
            root.id
            for root, events in self._events.items()
            if root.type == "execution"
            and root.id > after_id
            and Scope(events[0].tenant_id, events[0].organization_id) == scope
        ]
        return sorted(found)[:limit]
