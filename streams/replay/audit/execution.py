"""Audit of one execution: its log is verified and folded once, and everything is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from streams.errors import Inconsistent
from streams.events.model import Event, Root
from streams.payload.port import PayloadStore, Scope
from streams.projector.digests import EXECUTION, PARTS
from streams.replay.audit.payloads import PAYLOAD_CHECK, payload_check
from streams.replay.audit.port import ProjectedRows
from streams.replay.audit.rows import RowAudit
from streams.replay.audit.snapshots import FACTS, SNAPSHOTS, SnapshotAudit
from streams.replay.checks import Check, Status, failed, has_failed, passed
from streams.replay.errors import NoSuchExecution, TamperedLog
from streams.replay.payload_index import PayloadIndex
from streams.replay.port import LogHead, LogSource, StoredLog
from streams.replay.verified import VerifiedLog

LOG = "log"
EventRule = Callable[[Event], str | None]
"""Returns what is wrong with an event; None if nothing is."""
OnAudited = Callable[[int, int], None]
"""Called with the events audited so far, and all of them."""


@dataclass(slots=True)
class RuleTally:
    """A rule of events: how many were checked, and what broke it."""

    checked: int = 0
    broken: int = 0
    first: str | None = None

    def add(self, rule: EventRule, event: Event) -> None:
        """Check one event."""
        self.checked += 1
        if (wrong := rule(event)) is not None:
            self.broken += 1
            self.first = self.first or f"{event_name(event)}: {wrong}"


class _Parts(NamedTuple):
    """What one execution is compared with."""

    rows: RowAudit
    snapshots: SnapshotAudit
    payloads: PayloadIndex
    rules: Mapping[str, tuple[EventRule, RuleTally]]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The outcome for one execution."""

    execution_id: int
    seq: int
    """Its last event."""
    checks: tuple[Check, ...]
    rules: Mapping[str, RuleTally]

    @property
    def is_equal(self) -> bool:
        """Whether nothing failed."""
        return not has_failed(self.checks)

    def check(self, name: str) -> Check:
        """Return a check by its name."""
        return next(one for one in self.checks if one.name == name)


class ExecutionAudit:
    """Audits executions one by one; memory does not depend on their length."""

    def __init__(
        self,
        log: StoredLog,
        verified: VerifiedLog,
        stored: ProjectedRows,
        payloads: PayloadStore | None = None,
    ) -> None:
        """`payloads`: read them too; None: only events, rows and snapshots."""
        self._log, self._verified, self._stored = log, verified, stored
        self._payloads = payloads

    async def run(
        self,
        execution_id: int,
        scope: Scope,
        *,
        rules: Mapping[str, EventRule] | None = None,
        on_progress: OnAudited | None = None,
    ) -> AuditReport:
        """Audit an execution. What differs is in the report.

        Raises:
            NoSuchExecution: there is none in this scope.
            Unavailable: log, tables or payloads cannot be read; retrying is safe.
        """
        root = Root("execution", execution_id)
        # The tables first: the log then has at least the events that are projected.
        projected = await self._stored.execution(execution_id)
        head = await self._log.head(root)
        if head is None or head.scope != scope:
            raise NoSuchExecution(execution_id, scope.tenant_id, scope.organization_id)
        with ExitStack() as opened:
            parts = _Parts(
                opened.enter_context(RowAudit(self._stored, execution_id, projected)),
                SnapshotAudit(self._stored, execution_id),
                opened.enter_context(PayloadIndex()),
                {name: (rule, RuleTally()) for name, rule in (rules or {}).items()},
            )
            checks = await self._checks(root, head, parts, on_progress)
        tallies = {name: tally for name, (_, tally) in parts.rules.items()}
        return AuditReport(execution_id, head.seq, checks, tallies)

    async def _checks(
        self, root: Root, head: LogHead, parts: _Parts, on_progress: OnAudited | None
    ) -> tuple[Check, ...]:
        try:
            await self._read(root, head, parts, on_progress)
        except TamperedLog as error:
            return _stopped(failed(LOG, error.what, _place(error)))
        except Inconsistent as error:
            return _stopped(failed(LOG, "it does not fold", f"{root}: {error}"))
        where = "" if head.source is LogSource.LOG else f", read from the {head.source}"
        chain = passed(LOG, f"{head.seq} events, each checksum and the chain from zero{where}")
        rows, snapshots = await parts.rows.checks(head.seq), parts.snapshots.checks(head.seq)
        if self._payloads is None:
            return (chain, *rows, *snapshots)
        return (chain, *rows, *snapshots, await payload_check(self._payloads, parts.payloads))

    async def _read(
        self, root: Root, head: LogHead, parts: _Parts, on_progress: OnAudited | None
    ) -> None:
        """Verify and fold the whole log, page by page."""
        await parts.snapshots.start()
        last = None
        async for events in self._verified.pages(root, through_seq=head.seq):
            for rule, tally in parts.rules.values():
                for event in events:
                    tally.add(rule, event)
            await self._fold(events, parts)
            last = events[-1]
            if on_progress is not None:
                on_progress(last.seq, head.seq)
        assert last is not None, "a root with a head has a first event"
        if last.chain != head.chain.hex():
            raise TamperedLog(root, last.seq, last.position, "its chain is not the head's")

    async def _fold(self, events: list[Event], parts: _Parts) -> None:
        """Add a page, cut at the places of snapshots, which are compared there."""
        if self._payloads is not None:
            parts.payloads.add(events)
        begin = 0
        while (coming := parts.snapshots.coming) is not None and coming.seq <= events[-1].seq:
            end = coming.seq - events[0].seq + 1
            await parts.rows.add(events[begin:end])
            await parts.snapshots.add(parts.rows.view, events[end - 1])
            begin = end
        await parts.rows.add(events[begin:])


def event_name(event: Event) -> str:
    """Return the name of an event for messages."""
    return f"event {event.seq} ({event.type}, {event.event_id}) of execution {event.root.id}"


def _place(error: TamperedLog) -> str:
    position = "" if error.position is None else f", position {error.position}"
    return f"{error.root} seq {error.seq}{position}"


def _stopped(fault: Check) -> tuple[Check, ...]:
    """Return the checks of a log that cannot be folded: nothing is compared with it."""
    names = (EXECUTION, *PARTS, SNAPSHOTS, FACTS, PAYLOAD_CHECK)
    return (fault, *(Check(name, Status.NOT_RUN, "the log differs") for name in names))
