"""Business projections of an execution as of a moment, folded again from events and payloads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from blake3 import blake3

from streams.errors import PoisonRecord
from streams.events.model import Event, PayloadRef, Root
from streams.payload.port import Scope
from streams.projector.business.core import EventDeltas, ExecutionFold, blank, checksum_of
from streams.projector.business.declared import Declared, PlaybookOf
from streams.projector.business.source import fold_event, fold_table, lost_rows, reads_rows_of
from streams.projector.digests import RowChain
from streams.projector.outputs import LARGEST_BYTES, OutputTooLarge
from streams.projector.port import OutputTables
from streams.replay.cutoff import Cutoff
from streams.replay.errors import MissingObject
from streams.replay.state import LastEvent, OnProgress, Replay
from streams.replay.verified import VerifiedLog

AT_ONCE = 8
"""Payloads read at the same time."""


@dataclass(frozen=True, slots=True)
class ReplayedProjection:
    """One projection of an execution as of a moment."""

    fold: ExecutionFold
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedBusiness:
    """The business projections of an execution as of a moment."""

    execution_id: int
    scope: Scope
    as_of: LastEvent
    projections: tuple[ReplayedProjection, ...]
    payloads: RowChain
    """The digests of the payloads whose rows were folded, in order."""
    events_read: int

    @property
    def checksum(self) -> str:
        """The checksum of all projections."""
        found = sorted((one.fold.fold.name, one.checksum) for one in self.projections)
        return blake3(orjson.dumps(found)).hexdigest()


class BusinessReplay:
    """Folds business projections again, with the code that folds them live."""

    def __init__(
        self, replay: Replay, events: VerifiedLog, declared: Declared, tables: OutputTables
    ) -> None:
        self._replay, self._events = replay, events
        self._declared, self._tables = declared, tables

    async def state(
        self,
        execution_id: int,
        scope: Scope,
        cutoff: Cutoff | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> ReplayedBusiness:
        """Return the business projections of an execution as of a moment.

        Raises:
            NoSuchExecution, BadCutoff, TamperedLog: as for `Replay.state`.
            MissingObject: a payload is missing or damaged.
            Unavailable: log or payloads cannot be read; retrying is safe.
        """
        found = await self._replay.state(execution_id, scope, cutoff)
        row, root = found.execution, Root("execution", execution_id)
        playbook = PlaybookOf(scope, row.catalog_id or 0, row.version or 0)
        declared = (await self._declared.maintained({root: playbook}))[root]
        folds: list[ExecutionFold] = []
        payloads, through = RowChain(), found.as_of.seq
        async for events in self._events.pages(root, through_seq=through):
            folds = folds or [ExecutionFold(one, blank(one, events[0])) for one in declared]
            for begin in range(0, len(events), AT_ONCE):
                payloads = await self._absorb(folds, events[begin : begin + AT_ONCE], payloads)
            if on_progress is not None:
                on_progress(events[-1].seq, through)
        return ReplayedBusiness(
            execution_id=execution_id,
            scope=scope,
            as_of=found.as_of,
            projections=tuple(
                ReplayedProjection(one, checksum_of(one.progress, one.states.values()))
                for one in folds
            ),
            payloads=payloads,
            events_read=through,
        )

    async def _absorb(
        self, folds: Sequence[ExecutionFold], events: Sequence[Event], payloads: RowChain
    ) -> RowChain:
        added = await asyncio.gather(*(self._added(folds, event) for event in events))
        for event, deltas in zip(events, added, strict=True):
            for one, delta in zip(folds, deltas, strict=True):
                one.absorb(event, delta)
            if _ref(folds, event) is not None and event.payload_ref is not None:
                payloads = payloads.after(event.payload_ref.sha256.encode())
        return payloads

    async def _added(
        self, folds: Sequence[ExecutionFold], event: Event
    ) -> list[EventDeltas | None]:
        ref = _ref(folds, event)
        if ref is None:
            return [fold_event(one.fold, event) for one in folds]
        if ref.byte_length > LARGEST_BYTES:  # as live: such rows are not counted
            large = OutputTooLarge(f"{ref.uri}: {ref.byte_length} bytes are too large to read")
            return [_lost(one, event, large) for one in folds]
        try:
            table = await self._tables.table(ref)
        except PoisonRecord as error:
            raise MissingObject(event.root, event.seq, ref.uri, str(error)) from error
        return [
            fold_table(one.fold, event, table)
            if reads_rows_of(one.fold, event)
            else fold_event(one.fold, event)
            for one in folds
        ]


def _lost(one: ExecutionFold, event: Event, error: PoisonRecord) -> EventDeltas | None:
    is_read = reads_rows_of(one.fold, event)
    return lost_rows(event, error) if is_read else fold_event(one.fold, event)


def _ref(folds: Sequence[ExecutionFold], event: Event) -> PayloadRef | None:
    """Return the payload of an event if a projection counts its rows."""
    return event.payload_ref if any(reads_rows_of(one.fold, event) for one in folds) else None
