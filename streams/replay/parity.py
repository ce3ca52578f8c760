"""The replay parity gate: eight checks of finished executions, over all events of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streams.events.catalogue import Catalogue
from streams.payload.port import Scope
from streams.projector.digests import EXECUTION, PARTS
from streams.replay.audit.execution import LOG, AuditReport, EventRule, RuleTally
from streams.replay.audit.payloads import PAYLOAD_CHECK
from streams.replay.audit.snapshots import FACTS, SNAPSHOTS
from streams.replay.checks import Check, Status, failed, passed
from streams.replay.parity_rules import EnvelopeRule, has_key, no_hint_alone

ENVELOPES = "1 envelopes"
SNAPSHOT_FACTS = "2 snapshots"
FULL_REPLAY = "3 replay"
LIVE_STATE = "4 state"
BUSINESS = "5 business"
READER = "6 reader"
HINTS = "7 hints"
KEYS = "8 keys"


class BusinessParity(Protocol):
    """Compares business projections of an execution with a fold of its log."""

    async def compare(self, execution_id: int, scope: Scope) -> Sequence[Check]:
        """Return a check for each configured projection that has data of the execution.

        Raises:
            Unavailable: log or tables cannot be read; retrying is safe.
        """
        ...


def parity_rules(catalogue: Catalogue) -> Mapping[str, EventRule]:
    """Return the rules of single events, by the name of their check."""
    return {ENVELOPES: EnvelopeRule(catalogue), HINTS: no_hint_alone, KEYS: has_key}


@dataclass(slots=True)
class ParityGate:
    """Collects the checks of many executions; memory does not depend on their number."""

    executions: int = 0
    events: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    """How many executions passed a check."""
    _failed: dict[str, int] = field(default_factory=dict)
    _first: dict[str, str] = field(default_factory=dict)
    _not_run: dict[str, str] = field(default_factory=dict)

    def add(self, report: AuditReport, business: Sequence[Check] | None = None) -> None:
        """Add an execution; `business` is None where no business projection is configured."""
        self.executions += 1
        self.events += report.seq
        for name, tally in report.rules.items():
            self._add(name, _of_events(name, tally, report), report)
        self._add(SNAPSHOT_FACTS, report.check(FACTS), report)
        for name in (LOG, PAYLOAD_CHECK):
            self._add(FULL_REPLAY, report.check(name), report)
        for name in (EXECUTION, *PARTS, SNAPSHOTS):
            self._add(LIVE_STATE, report.check(name), report)
        for one in business or ():
            self._add(BUSINESS, one, report)

    def _add(self, name: str, check: Check, report: AuditReport) -> None:
        if check.status is Status.PASSED:
            self._counts[name] = self._counts.get(name, 0) + 1
        elif check.status is Status.FAILED:
            self._failed[name] = self._failed.get(name, 0) + 1
            what = check.first or check.detail
            self._first.setdefault(name, f"execution {report.execution_id}: {what}")
        elif check.status is Status.NOT_RUN:
            self._not_run.setdefault(name, check.detail)

    def checks(self, reader: Check, *, has_business: bool = False) -> list[Check]:
        """Return the eight checks."""
        numbers = f"{self.events} events of {self.executions} executions"
        none = "no projection has data of them" if has_business else "not configured"
        return [
            self._check(ENVELOPES, numbers, "no events"),
            self._check(SNAPSHOT_FACTS, "all six facts in each", "they have no snapshots"),
            self._check(FULL_REPLAY, f"{numbers}, and the payloads", "no events"),
            self._check(LIVE_STATE, f"rows and snapshots of {self.executions} executions", "none"),
            self._check(BUSINESS, "business projections", none),
            reader,
            self._check(HINTS, numbers, "no events"),
            self._check(KEYS, numbers, "no events"),
        ]

    def _check(self, name: str, numbers: str, why_not: str) -> Check:
        if wrong := self._failed.get(name):
            return failed(name, f"{wrong} failed; {numbers}", self._first[name])
        if name in self._not_run:
            return Check(name, Status.NOT_RUN, self._not_run[name])
        if not self._counts.get(name):
            return Check(name, Status.NOT_APPLICABLE, why_not)
        return passed(name, numbers)


def _of_events(name: str, tally: RuleTally, report: AuditReport) -> Check:
    """Return the check of a rule, which must have seen every event."""
    if tally.broken:
        return failed(name, f"{tally.broken} of {tally.checked} events", tally.first)
    if tally.checked < report.seq:
        first = report.check(LOG).first
        return failed(name, f"only {tally.checked} of {report.seq} events can be read", first)
    return passed(name, f"{tally.checked} events")
