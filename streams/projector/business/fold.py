"""Live fold of business projections: continues stored states with the events of a batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import pyarrow as pa

from streams.errors import Inconsistent, PoisonRecord
from streams.events.model import Event, Root
from streams.log.port import EventStore
from streams.payload.port import Scope
from streams.projector.business.core import EventDeltas, ExecutionFold, blank
from streams.projector.business.declared import Declared, PlaybookOf
from streams.projector.business.port import BusinessStates, StateId
from streams.projector.business.source import fold_event, fold_table, lost_rows, reads_rows_of
from streams.projector.core import View
from streams.projector.outputs import Outputs
from streams.projector.rows import Row
from streams.projector.views import State, by_root

_log = logging.getLogger(__name__)
AT_ONCE = 256
"""Events of a gap whose payloads are read before they are folded."""
MANY_ROWS = 2000
"""Larger payloads are folded in a thread."""


class BusinessFolds:
    """Reads each payload once, for its statistics and for all projections of its execution.

    Nothing is cached: every batch continues what is stored, so that a shard that moved, or whose
    rows were deleted, continues from what is there. A gap is read from the log.
    """

    def __init__(
        self, log: EventStore, outputs: Outputs, declared: Declared, states: BusinessStates
    ) -> None:
        self._log, self._outputs = log, outputs
        self._declared, self._states = declared, states

    async def rows(self, events: Sequence[Event], views: Mapping[Root, State]) -> list[Row]:
        """Return the rows that a batch changes: of outputs, states and progress.

        Raises:
            Unavailable: log, tables or payloads cannot be reached; retrying is safe.
        """
        opened = await self._open(by_root(events), views)
        read = ReadRows(opened)
        rows: list[Row] = [*await self._outputs.rows(events, read.take)]
        for root, found in by_root(events).items():
            if root in opened:
                try:
                    rows += await self._fold(opened[root], found, read)
                except Inconsistent as error:
                    # A broken root must not block the others.
                    _log.error("%s: its business projections are not folded: %s", root, error)
        return rows

    async def _open(
        self, roots: Mapping[Root, Sequence[Event]], views: Mapping[Root, State]
    ) -> dict[Root, list[ExecutionFold]]:
        playbooks: dict[Root, PlaybookOf] = {}
        for root in roots:
            view = views.get(root)
            if isinstance(view, View) and (plan := view.plan) is not None:
                scope = Scope(plan.tenant_id, plan.organization_id)
                version = plan.catalog_version or 0
                playbooks[root] = PlaybookOf(scope, plan.catalog_id or 0, version)
        found = await self._declared.maintained(playbooks)
        wanted = {root: folds for root, folds in found.items() if folds}
        if not wanted:
            return {}
        stored = await self._states.progress([root.id for root in wanted])
        known = {one.key: one for one in stored}
        opened = {}
        for root, folds in wanted.items():
            first = roots[root][0]
            opened[root] = [
                ExecutionFold(one, known.get((root.id, one.name, one.version)) or blank(one, first))
                for one in folds
            ]
        return opened

    async def _fold(
        self, folds: Sequence[ExecutionFold], batch: Sequence[Event], read: ReadRows
    ) -> list[Row]:
        """Fold a batch of one execution, and what is missing before it."""
        rows: list[Row] = []
        own = {event.seq: event for event in batch}
        stored = [one.progress for one in folds]
        async for events in self._in_order(min(one.progress.last_seq for one in folds), own):
            earlier = [event for event in events if event.seq not in own]
            rows += await self._outputs.rows(earlier, read.take)
            await self._load(folds, events, read)
            for event in events:
                for one in folds:
                    one.absorb(event, read.added(one, event))
                read.drop(event)
        for one, before in zip(folds, stored, strict=True):
            if one.progress is not before:
                rows += (one.states[digest] for digest in sorted(one.changed))
                rows.append(one.progress)
        return rows

    async def _in_order(self, after: int, own: Mapping[int, Event]) -> AsyncIterator[list[Event]]:
        """Yield an execution's events after a place, in parts; those not in `own` from the log."""
        seq, events = after, list[Event]()
        root = next(iter(own.values())).root
        for upper in sorted(one for one in own if one > after):
            if upper > seq + 1:
                missing = self._log.read_root(root, after_seq=seq, through_seq=upper - 1)
                async for event in missing:
                    events.append(event)
                    seq = event.seq
                    if len(events) >= AT_ONCE:
                        yield events
                        events = []
            if upper != seq + 1:
                raise Inconsistent(f"{root}: the log has no event {seq + 1}; restore it")
            events.append(own[upper])
            seq = upper
        if events:
            yield events

    async def _load(
        self, folds: Sequence[ExecutionFold], events: Iterable[Event], read: ReadRows
    ) -> None:
        """Load the stored states of the keys that these events change."""
        ids: dict[StateId, ExecutionFold] = {}
        for event in events:
            for one in folds:
                added = read.added(one, event)
                for digest in added.deltas if added is not None else ():
                    if digest not in one.states:
                        ids[_id(one, digest)] = one
        if not ids:
            return
        for state in await self._states.states(list(ids)):
            ids[StateId(*state.key)].states[state.key_digest] = state  # type: ignore[arg-type]


class ReadRows:
    """What the events of executions add to their projections, as their payloads are read."""

    def __init__(self, opened: Mapping[Root, Sequence[ExecutionFold]]) -> None:
        self._opened = opened
        self._added: dict[tuple[Root, int], dict[tuple[str, int], EventDeltas | None]] = {}

    async def take(self, event: Event, found: pa.Table | PoisonRecord) -> None:
        """Fold the rows of a payload, and let the rows go."""
        for one in self._opened.get(event.root, ()):
            if not reads_rows_of(one.fold, event) or event.seq <= one.progress.last_seq:
                continue
            if isinstance(found, PoisonRecord):
                folded = lost_rows(event, found)
            elif found.num_rows < MANY_ROWS:
                folded = fold_table(one.fold, event, found)
            else:
                folded = await asyncio.to_thread(fold_table, one.fold, event, found)
            self._added.setdefault((event.root, event.seq), {})[_version(one)] = folded

    def added(self, one: ExecutionFold, event: Event) -> EventDeltas | None:
        """Return what an event adds to a projection."""
        if event.seq <= one.progress.last_seq:
            return None
        of_event = self._added.setdefault((event.root, event.seq), {})
        if (key := _version(one)) not in of_event:
            of_event[key] = fold_event(one.fold, event)
        return of_event[key]

    def drop(self, event: Event) -> None:
        """Forget an event that was folded."""
        self._added.pop((event.root, event.seq), None)


def _version(one: ExecutionFold) -> tuple[str, int]:
    return one.fold.name, one.fold.version


def _id(one: ExecutionFold, digest: str) -> StateId:
    progress = one.progress
    return StateId(progress.execution_id, progress.projection, progress.version, digest)
