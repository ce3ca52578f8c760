"""Rebuild of projections: root by root, its rows are deleted and folded again from the log.

Readers and a live projector may go on. The rows of a root are replaced in one transaction, and
only those as of the place up to which it was folded: newer ones are the live projector's. A root
of more than `CHUNK` events is written in several. After an interruption, run it again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from streams.events.model import Event
from streams.log.port import EventStore
from streams.projector.business.rebuilt import FoldsOf, RebuiltStates
from streams.projector.heads import BEFORE_ALL, RootHeads, RootPlace
from streams.projector.outputs import Outputs
from streams.projector.port import ProjectionStore
from streams.projector.rows import Row
from streams.projector.views import Folded, Views

CHUNK = 5000
PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildProgress:
    """How much of the log was folded, and since when."""

    events: int = 0
    total_events: int
    roots: int = 0
    broken: tuple[str, ...] = ()
    """Roots whose events cannot be folded; their rows were not touched."""
    seconds: float = 0.0

    @property
    def events_per_s(self) -> float:
        """The rate so far."""
        return self.events / self.seconds if self.seconds else 0.0


OnRebuild = Callable[[RebuildProgress], None]


async def rebuild(
    heads: RootHeads,
    log: EventStore,
    store: ProjectionStore,
    outputs: Outputs | None = None,
    report: OnRebuild | None = None,
    business: FoldsOf | None = None,
) -> RebuildProgress:
    """Fold the log again, root by root; return what was done.

    Frame outputs are read again if `outputs` or `business` is given.

    Raises:
        Unavailable: the log or the tables cannot be reached; run it again.
    """
    started_at = time.monotonic()
    done = RebuildProgress(total_events=(await heads.totals()).events)
    after_id = BEFORE_ALL
    while page := await heads.page(after_id=after_id, limit=PAGE):
        for place in page:
            rows = _Root(place, log, store, outputs, business)
            async for count in rows.replaced():
                seconds = time.monotonic() - started_at
                done = replace(done, events=done.events + count, seconds=seconds)
                if report is not None:
                    report(done)
            broken = (*done.broken, str(place.root)) if rows.is_broken else done.broken
            done = replace(done, roots=done.roots + 1, broken=broken)
        after_id = page[-1].root.id
    return done


class _Root:
    """One root of a rebuild."""

    def __init__(
        self,
        place: RootPlace,
        log: EventStore,
        store: ProjectionStore,
        outputs: Outputs | None,
        business: FoldsOf | None,
    ) -> None:
        self._place, self._log, self._store, self._outputs = place, log, store, outputs
        self._states = RebuiltStates()
        self._business = None if business is None else business(self._states)
        self.is_broken = False

    async def replaced(self) -> AsyncIterator[int]:
        """Replace the rows; yield how many events were folded, chunk by chunk."""
        root, views, is_first = self._place.root, Views(self._log, remembered=1), True
        async for events in self._chunks():
            folded = await views.fold({root: events})
            if root not in folded.states:
                self.is_broken = True
                return
            folded.changes.add(await self._read(events, folded))
            if is_first:
                await self._store.replace(root, self._place.seq, folded.changes)
            else:
                await self._store.save(folded.changes, ())
            views.remember(folded)
            is_first = False
            yield len(events)
        if self._business is not None and root.type == "execution":
            await self._store.replace_business(root.id, self._place.seq, self._states.changes)

    async def _read(self, events: list[Event], folded: Folded) -> list[Row]:
        """Return the rows of outputs; those of business projections are written at the end."""
        if self._business is not None:
            return self._states.split(await self._business.rows(events, folded.states))
        return [] if self._outputs is None else [*await self._outputs.rows(events)]

    async def _chunks(self) -> AsyncIterator[list[Event]]:
        chunk: list[Event] = []
        async for event in self._log.read_root(self._place.root, through_seq=self._place.seq):
            chunk.append(event)
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk
