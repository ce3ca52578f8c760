"""Fold of events into facts. Pure: a fact depends only on the events up to its position.

The states of executions, stages and frames are the projector's; this adds who worked on what for
how long, and what a day used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from streams.events.model import Event
from streams.events.types import (
    AnyEvent,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    FrameCommitted,
    FrameHeartbeat,
    ResultStored,
    typed,
)
from streams.facts.audit import audit_facts
from streams.facts.model import BillingFact, Fact
from streams.facts.shapes import At, execution_fact, frame_fact, stage_fact
from streams.facts.work import NO_WORK, Work, Works, ended_works, worked
from streams.projector.core import Touched, View, touched_rows
from streams.projector.core import absorb as absorb_view
from streams.projector.rows import FrameRow, StageRow
from streams.results.manifest import checkpoint_rows

_MS = timedelta(milliseconds=1)


class Usage(NamedTuple):
    """What was used, as far as one event says it; usages add up."""

    requests: int = 0
    rows: int = 0
    rows_failed: int = 0
    bytes: int = 0
    worker_ms: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(*(one + more for one, more in zip(self, other, strict=True)))


NO_USAGE = Usage()


class FactState(NamedTuple):
    """An execution as of `seq`: what its next facts depend on."""

    view: View = View()
    works: Mapping[int, Work] = {}
    """The work on open frames and commands, by their ids."""
    days: Mapping[date, Usage] = {}

    @property
    def seq(self) -> int:
        """The last absorbed event."""
        return self.view.seq


def absorb(state: FactState, event: Event) -> tuple[FactState, list[Fact]]:
    """Return the state after an event of an execution, and the facts that it changed; idempotent.

    Raises:
        Gap: events before this one were not absorbed; read them from the log first.
        Inconsistent: the events cannot be an execution's.
    """
    view, touched = absorb_view(state.view, event)
    if view is state.view or view.plan is None:
        return state, []
    known, at = typed(event), event.ingest_time
    works, held = worked(state.works, known, at)
    if view.plan.has_ended and works:
        works, left = ended_works(works, at)
        held += left
    used = _usage(known, held // _MS)
    days = state.days
    facts = [*_states(view, touched, event, works), *audit_facts(event)]
    if used != NO_USAGE:
        day = at.date()
        days = {**days, day: days.get(day, NO_USAGE).plus(used)}
        facts.append(_billing(view, day, days[day], event))
    return FactState(view, _still_open(works, touched), days), facts


def _usage(known: AnyEvent | None, worker_ms: int) -> Usage:
    """Return what an event reports: rows and their retries, runs of commands, bytes stored."""
    match known:
        case FrameCommitted():
            rows, failed = known.rows, known.failed_rows
            requests = rows + (known.retries or 0)
        case FrameHeartbeat() if known.cursor is not None:
            rows, failed = checkpoint_rows(known), known.failed_rows or 0
            requests = rows + (known.retries or 0)
        case CommandClaimed():
            requests, rows, failed = 1, 0, 0
        case _:
            requests = rows = failed = 0
    return Usage(requests, rows, failed, stored_bytes(known), worker_ms)


def stored_bytes(known: AnyEvent | None) -> int:
    """Return the length of the output that an event refers to; inputs are none."""
    match known:
        case (
            FrameCommitted(payload_ref=found)
            | FrameHeartbeat(payload_ref=found)
            | CommandCompleted(payload_ref=found)
            | CommandFailed(payload_ref=found)
            | ResultStored(payload_ref=found)
        ) if found is not None:
            return found.byte_length
    return 0


def _states(view: View, touched: Touched, event: Event, works: Works) -> Iterator[Fact]:
    assert view.plan is not None
    at = At(event, view.plan.path)
    yield execution_fact(view.row, at)
    for row in touched_rows(view, touched, event.seq):
        if isinstance(row, StageRow):
            yield stage_fact(row, at)
        elif isinstance(row, FrameRow):
            yield frame_fact(row, works.get(row.frame_id, NO_WORK), at)


def _still_open(works: Works, touched: Touched) -> Works:
    ended = {row.key[0] for row in touched.ended}
    if not ended.intersection(works):
        return works
    return {key: one for key, one in works.items() if key not in ended}


def _billing(view: View, day: date, used: Usage, event: Event) -> BillingFact:
    plan = view.plan
    assert plan is not None
    return BillingFact(
        tenant_id=plan.tenant_id,
        organization_id=plan.organization_id,
        day=day,
        execution_id=plan.execution_id,
        path=plan.path,
        requests=used.requests,
        rows=used.rows,
        rows_failed=used.rows_failed,
        bytes=used.bytes,
        worker_ms=used.worker_ms,
        event_id=event.event_id,
        seq=event.seq,
        position=event.position,
        stored_at=event.ingest_time,
    )
