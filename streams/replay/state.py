"""The state of an execution as of a moment, folded again from its verified events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from streams.clock import Clock
from streams.events.model import Event, Root
from streams.events.upcast import steps_applied
from streams.payload.port import Scope
from streams.projector.core import View, absorb, checksums, open_rows
from streams.projector.digests import ALL, KIND_OF, PARTS, EndedRows, RowChain
from streams.projector.rows import ExecutionRow, Row, SnapshotRow
from streams.projector.snapshots import UnusableSnapshot, snapshot_of, view_of
from streams.replay.cutoff import Cutoff, OffsetReader, seq_of
from streams.replay.errors import BadCutoff, NoSuchExecution, TamperedLog, UnknownProjection
from streams.replay.port import LogHead, LogSource, StoredLog
from streams.replay.verified import BEGIN, ChainLink, VerifiedLog

PROJECTIONS = ("execution", "loop", "stage", "frame", "command", "result_ref", ALL)
BUSINESS = "business_object"
"""The business projections, which need payloads: see `streams.replay.business`."""
_SAME = {"loop": "stage"}
"""Projections under the names of the specification."""
OnProgress = Callable[[int, int], None]
"""Called with the places folded so far, and those to fold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvent:
    """The last event that belongs to a state."""

    seq: int
    position: int
    event_id: int
    event_type: str
    time: datetime
    chain: str


@dataclass(frozen=True, slots=True)
class SnapshotUse:
    """The place of a snapshot; `ignored` says why it was not used."""

    seq: int
    ignored: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedState:
    """An execution as of a moment."""

    execution_id: int
    scope: Scope
    as_of: LastEvent
    execution: ExecutionRow
    still_open: tuple[Row, ...]
    ended: EndedRows
    checksums: dict[str, str]
    events_read: int
    snapshot: SnapshotUse | None
    """The snapshot it was folded from, or why one was ignored."""
    payloads: RowChain
    """The digests of all payloads its events refer to."""
    upcasts: Mapping[str, int]
    """How many of the events read were upcasted, by the step."""
    source: LogSource = LogSource.LOG
    """Where its events were read."""

    def checksum_of(self, projection: str) -> str:
        """Return the checksum of a projection."""
        return self.checksums[known_projection(projection)]

    def rows_of(self, projection: str) -> tuple[Row, ...]:
        """Return the rows of a projection that are open."""
        kind = known_projection(projection)
        wanted = PARTS if kind == ALL else (kind,)
        return tuple(row for row in self.still_open if KIND_OF[type(row)] in wanted)


def known_projection(name: str) -> str:
    """Return the name of a projection.

    Raises:
        UnknownProjection: there is none.
    """
    if name not in PROJECTIONS:
        raise UnknownProjection(name, (*PROJECTIONS, BUSINESS))
    return _SAME.get(name, name)


class _Start(NamedTuple):
    """Where a fold begins: a view, its place in the log, and the event there."""

    view: View
    link: ChainLink = BEGIN
    event: Event | None = None
    snapshot: SnapshotUse | None = None


class _Fold(NamedTuple):
    """A view, the last event in it, and what it was made from."""

    view: View
    last: Event
    events_read: int
    snapshot: SnapshotUse | None
    upcasts: Mapping[str, int]
    source: LogSource


class Replay:
    """Folds executions again, up to any moment."""

    def __init__(
        self,
        log: StoredLog,
        events: VerifiedLog,
        clock: Clock,
        offsets: OffsetReader | None = None,
    ) -> None:
        self._log, self._events, self._clock, self._offsets = log, events, clock, offsets

    async def state(
        self,
        execution_id: int,
        scope: Scope,
        cutoff: Cutoff | None = None,
        *,
        use_snapshots: bool = True,
        on_progress: OnProgress | None = None,
    ) -> ReplayedState:
        """Return an execution as of a moment.

        Raises:
            NoSuchExecution: there is none in this scope.
            BadCutoff: the moment is not one of this execution.
            TamperedLog: an event is not what was appended.
            Unavailable: the log cannot be read; retrying is safe.
        """
        fold = await self._fold(execution_id, scope, cutoff, use_snapshots, on_progress)
        view, last = fold.view, fold.last
        return ReplayedState(
            execution_id=execution_id,
            scope=scope,
            as_of=_moment(last),
            execution=view.row,
            still_open=tuple(open_rows(view)),
            ended=view.ended,
            checksums=checksums(view),
            events_read=fold.events_read,
            snapshot=fold.snapshot,
            payloads=view.payloads,
            upcasts=fold.upcasts,
            source=fold.source,
        )

    async def snapshot(
        self,
        execution_id: int,
        scope: Scope,
        cutoff: Cutoff | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> SnapshotRow:
        """Return a snapshot of an execution as of a moment, folded from its first event.

        Raises:
            NoSuchExecution, BadCutoff, TamperedLog, Unavailable: as for `state`.
        """
        fold = await self._fold(execution_id, scope, cutoff, False, on_progress)
        return snapshot_of(fold.view, fold.last)

    async def _fold(
        self,
        execution_id: int,
        scope: Scope,
        cutoff: Cutoff | None,
        use_snapshots: bool,
        on_progress: OnProgress | None,
    ) -> _Fold:
        root = Root("execution", execution_id)
        head = await self._head(root, scope)
        through = await self._through(root, head, cutoff or Cutoff())
        start = await self._start(root, through, use_snapshots=use_snapshots)
        view, last = start.view, start.event
        upcasts: Counter[str] = Counter()
        async for events in self._events.pages(root, after=start.link, through_seq=through):
            view = folded(view, events)
            upcasts += steps_applied(events)
            last = events[-1]
            if on_progress is not None:
                on_progress(last.seq, through)
        assert last is not None, "a root with a head has a first event"
        if last.seq == head.seq and last.chain != head.chain.hex():
            raise TamperedLog(root, last.seq, last.position, "its chain is not that of the head")
        events_read = last.seq - start.link.seq
        return _Fold(view, last, events_read, start.snapshot, upcasts, head.source)

    async def _start(self, root: Root, through_seq: int, *, use_snapshots: bool) -> _Start:
        """Return the newest usable snapshot, compared with the log; else the beginning."""
        found = await self._log.snapshot(root, through_seq) if use_snapshots else None
        if found is None:
            return _Start(View())
        try:
            view = view_of(found)
        except UnusableSnapshot as unusable:
            return _Start(View(), snapshot=SnapshotUse(found.seq, str(unusable)))
        event = await self._events.one(root, found.seq)
        if event.chain != found.chain:
            why = "its chain is not the log's"
            return _Start(View(), snapshot=SnapshotUse(found.seq, why))
        link = ChainLink(found.seq, bytes.fromhex(found.chain))
        return _Start(view, link, event, SnapshotUse(found.seq))

    async def _head(self, root: Root, scope: Scope) -> LogHead:
        head = await self._log.head(root)
        if head is None or head.scope != scope:
            raise NoSuchExecution(root.id, scope.tenant_id, scope.organization_id)
        return head

    async def _through(self, root: Root, head: LogHead, cutoff: Cutoff) -> int:
        if cutoff.time is not None and cutoff.time > self._clock.now():
            raise BadCutoff(f"{cutoff.time.isoformat()} is in the future; its state is not known")
        return await seq_of(cutoff, root, head, self._log, self._offsets)


def folded(view: View, events: Iterable[Event]) -> View:
    """Return the view after events in order."""
    for event in events:
        view, _ = absorb(view, event)
    return view


def _moment(event: Event) -> LastEvent:
    return LastEvent(
        seq=event.seq,
        position=event.position,
        event_id=event.event_id,
        event_type=event.type,
        time=event.ingest_time,
        chain=event.chain,
    )
