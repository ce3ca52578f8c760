"""The planner's loop: folds events, appends decisions, publishes work. Has no rules itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cachetools import FIFOCache

from streams.errors import Inconsistent, Refused
from streams.events.errors import BadEvent
from streams.events.model import Event, Json, NewEvent, PayloadRef
from streams.events.types import ReplySent
from streams.execution.cancellation import orphaned
from streams.execution.evolve import absorb_own
from streams.execution.plan import COMPLETED, Plan
from streams.kafka.work.item import WorkItem
from streams.metrics.declared import FRAME_BACKLOG, OPEN_EXECUTIONS
from streams.metrics.metric import Sample
from streams.payload.port import Scope
from streams.planner.backlog import STAGE_KINDS
from streams.planner.core import Decision, fail_refused
from streams.planner.decider import Decider
from streams.planner.items import items_of, waiting_items
from streams.planner.leases import has_leases_of_earlier_incarnations
from streams.planner.limits import Rules
from streams.planner.log_outages import LogOutages
from streams.planner.open_plans import OpenPlans
from streams.planner.plan_folding import PlanFolding
from streams.planner.port import PlannerPorts
from streams.planner.quarantine import Quarantine, all_as, last_events
from streams.planner.watch import Watch
from streams.planner.watches import Watches, watch_of
from streams.planner.work_sender import Sender

_log = logging.getLogger(__name__)
_TRIES = 8
_ENDED_REMEMBERED = 100_000
_CHECKED_AT_ONCE = 200
"""Executions whose unclaimed work one tick looks at."""
_TAKEN_OVER_AT_ONCE = 500
"""Executions read from the log until their plans are written, and can leave memory."""


SuspendedAmong = Callable[[Sequence[int]], Awaitable[Mapping[int, int]]]
"""Returns which of these executions are suspended, each since a `seq`."""


def _nothing() -> None:
    """Report to nobody."""


async def _none_suspended(_: Sequence[int]) -> Mapping[int, int]:
    return {}


def _has_absorbed(watch: Watch | None, seq: int) -> bool:
    """Return whether the tables have a plan with all events up to its last `seq`."""
    return watch is not None and watch.absorbed_through == seq


@dataclass(frozen=True, slots=True)
class _Settled:
    """A plan whose decision is in the log, its work items, and when to decide again."""

    plan: Plan
    items: list[WorkItem]
    wake_at: datetime | None


class Planner:
    """Holds the plans of open executions and carries out what `decide` returns.

    A batch is folded, decided, its payloads stored, its events appended, its work published,
    and then acknowledged by the caller. After a crash it is repeated; every step is idempotent.
    """

    def __init__(self, ports: PlannerPorts, rules: Rules, *, name: str = "planner") -> None:
        self._ports, self._rules = ports, rules
        self.plans = OpenPlans(ports.tables)
        self._folding = PlanFolding(ports.store, self.plans)
        self._watches = Watches()
        self._floors: dict[int, datetime] = {}
        self._incarnations: Mapping[str, str] = {}
        self._quarantine = Quarantine(ports, name)
        self._sender = Sender(ports.queue, ports.clock, rules)
        self._ended: FIFOCache[int, int] = FIFOCache(_ENDED_REMEMBERED)
        self._decider = Decider(ports, rules)
        self._outages = LogOutages(ports.clock, rules.lease_margin)
        self.on_progress: Callable[[], None] = _nothing
        """Called during a takeover when a part of it is done."""

    async def absorb(self, events: Sequence[Event]) -> list[int]:
        """Fold events of executions, in log order, and carry out the decisions.

        Returns the executions that changed.

        Raises:
            Unavailable: a dependency is down; retrying with the same events is safe.
        """
        by_root: dict[int, list[Event]] = {}
        for event in events:
            if event.root.type != "execution" or self.has_absorbed(event.root.id, event.seq):
                continue
            if self._quarantine.accepts(event):
                by_root.setdefault(event.root.id, []).append(event)
        changed: list[int] = []

        async def handle(ids: Sequence[int]) -> None:
            found = [
                plan
                for key in ids
                if (plan := await self._folding.folded(by_root[key])) is not None
            ]
            await self._follow(found)
            changed.extend(plan.execution_id for plan in found)

        self._set_aside(await self._quarantine.handle_each("event", last_events(by_root), handle))
        return changed

    def has_absorbed(self, execution_id: int, seq: int) -> bool:
        """Return whether the event at this seq is already absorbed."""
        plan = self.plans.get(execution_id)
        if plan is None:
            ended = seq <= self._ended.get(execution_id, 0)
            return ended or self._quarantine.has_seen(execution_id, seq)
        return seq <= plan.seq or seq in plan.ahead

    async def adopt(
        self, heads: Mapping[int, int], suspended_among: SuspendedAmong = _none_suspended
    ) -> None:
        """Take over open executions, each with the `seq` of its last event in the log.

        What the tables have up to there needs nothing: they have no suspended execution. The
        others are read from the log, and their open work is published again, except those
        that are suspended, which are ignored until an event resumes them.
        """
        await self._read_incarnations()
        stored = self._ports.tables.watches()
        new = {key: seq for key, seq in heads.items() if key not in self.plans}
        late = [key for key, seq in new.items() if not _has_absorbed(stored.get(key), seq)]
        left = await suspended_among(late) if late else {}
        for execution_id, seq in left.items():
            self._quarantine.add(execution_id, seq)
        self._floors |= dict.fromkeys(new, self._ports.clock.now())
        for execution_id in sorted(new.keys() - set(late)):
            self._adopt(execution_id, stored[execution_id])
        behind = [key for key in late if key not in left]
        for start in range(0, len(behind), _TAKEN_OVER_AT_ONCE):
            part = behind[start : start + _TAKEN_OVER_AT_ONCE]
            ours = all_as("as it was taken over from the log", part)
            self._set_aside(await self._quarantine.handle_each("takeover", ours, self._take_over))
            self.on_progress()
        self.plans.save([], [key for key in stored if key not in self.plans])
        self.on_progress()
        _log.info("took over %d open executions: %d from the log", len(new), len(behind))

    def _adopt(self, execution_id: int, watch: Watch) -> None:
        """Take over an execution whose plan in the tables has all of its events."""
        self.plans.add_stored(execution_id)
        self._watches.set(execution_id, watch)
        if watch.is_waiting:
            # An earlier planner has published its work; if that is lost, the timer does again.
            at = self._ports.clock.now() + self._rules.republish_after
            self._watches.check_work_at(execution_id, at)

    async def _take_over(self, ids: Sequence[int]) -> None:
        read = [await self._folding.read_on(key, self._ports.tables.get(key)) for key in ids]
        await self._follow([plan for plan in read if plan is not None])
        ours = [self.plans[key] for key in ids if key in self.plans]
        await self._sender.publish([item for plan in ours for item in waiting_items(plan)])
        self._check_work(ours)

    async def read_again(self, execution_id: int) -> None:
        """Read an execution from the log whose plan the tables have lost.

        Raises:
            Unavailable: the log cannot be reached.
        """
        _log.warning("execution %d is read from the log: the tables lost its plan", execution_id)
        self.plans.drop(execution_id)
        ours = all_as("as it was read from the log again", [execution_id])
        self._set_aside(await self._quarantine.handle_each("takeover", ours, self._take_over))

    def drop(self, execution_ids: Iterable[int]) -> None:
        """Drop executions that another planner has now."""
        gone = list(execution_ids)
        for execution_id in gone:
            self._forget(execution_id)
            self._quarantine.remove(execution_id)
        self._ports.tables.forget(gone)

    @property
    def known(self) -> frozenset[int]:
        """The executions it holds, including suspended ones."""
        return frozenset(self.plans) | self._quarantine.suspended

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of the executions it holds and has ended."""
        yield from self._ports.counts.samples()
        yield Sample(OPEN_EXECUTIONS, len(self.plans))
        backlog = self._watches.backlog
        for kind in STAGE_KINDS:
            yield Sample(FRAME_BACKLOG, backlog[kind], (kind,))

    async def tick(self) -> None:
        """Handle executions whose wake time has come."""
        await self._read_incarnations()
        now = self._ports.clock.now()
        due = self._watches.due(now, self._incarnations)

        async def handle(ids: Sequence[int]) -> None:
            await self._follow([self.plans[key] for key in ids])

        self._set_aside(
            await self._quarantine.handle_each("time", all_as("as its time came", due), handle)
        )
        await self._publish_unclaimed(now)

    async def _publish_unclaimed(self, now: datetime) -> None:
        """Publish work items again that nobody has claimed for too long."""
        due = [self.plans[key] for key in self._watches.work_due(now, _CHECKED_AT_ONCE)]
        items = [item for plan in due for item in self._sender.unclaimed(plan, now)]
        await self._sender.publish(items)
        self._check_work(due)

    def _check_work(self, plans: Iterable[Plan]) -> None:
        """Set when the waiting work items of open plans are looked at again."""
        for plan in plans:
            self._watches.check_work_at(plan.execution_id, self._sender.check_at(plan))

    async def suspend(self, execution_id: int, reason: str) -> None:
        """Suspend an execution until it is resumed.

        Raises:
            Unavailable: the log cannot be reached; retrying is safe.
        """
        await self._quarantine.suspend(execution_id, reason)
        self._set_aside([execution_id])

    def _set_aside(self, execution_ids: Sequence[int]) -> None:
        for execution_id in execution_ids:
            self._forget(execution_id)
        self.plans.save([], execution_ids)

    async def _follow(self, plans: Sequence[Plan]) -> None:
        """Decide for these plans and carry it out."""
        decided = await asyncio.gather(*(self._settled(plan) for plan in plans))
        settled = [one.plan for one in decided]
        ended = [plan for plan in settled if plan.has_ended]
        suspended = [plan for plan in settled if plan.is_suspended and not plan.has_ended]
        open_plans = [p for p in settled if not p.has_ended and not p.is_suspended]
        wake_at = {one.plan.execution_id: one.wake_at for one in decided}
        # Recorded before it is sent: if the broker does not accept an item, the next tick retries.
        for plan in open_plans:
            self.plans.put(plan)
            self._watches.set(plan.execution_id, watch_of(plan, wake_at[plan.execution_id]))
        self._check_work(open_plans)
        await self._sender.publish([item for one in decided for item in one.items])
        self._check_work(open_plans)
        for plan in ended:
            await self._end(plan)
            self._ports.counts.ended(plan)
        for plan in suspended:
            self._forget(plan.execution_id)
            self._quarantine.add(plan.execution_id, plan.seq)
        gone = [plan.execution_id for plan in (*ended, *suspended)]
        self.plans.save([(plan, wake_at[plan.execution_id]) for plan in open_plans], gone)

    async def _settled(self, plan: Plan) -> _Settled:
        """Return the plan once its decision is in the log, and its work items."""
        for _ in range(_TRIES):
            incarnations = await self._incarnations_for(plan)
            floor = self._outages.floor(self._floors.get(plan.execution_id, plan.started_at))
            decision = await self._decider.decision(plan, floor, incarnations)
            await self._store(plan, decision.payloads)
            settled, refused = await self._tried(decision)
            if isinstance(refused, BadEvent):
                now, drafted = self._ports.clock.now(), decision.events
                decision = fail_refused(plan, self._rules, now, drafted, refused)
                settled, refused = await self._tried(decision)
            if settled is not None:
                await self._append_each(decision.for_parent)
                return _Settled(settled, items_of(settled, decision.events), decision.wake_at)
            later = await self._folding.read_on(plan.execution_id, plan)
            if later is None or (later is plan and refused is not None):
                raise Inconsistent(f"{plan.root}: its next events are refused: {refused}")
            plan = later
        raise Inconsistent(
            f"{plan.root}: another process keeps changing it; is a second planner running?"
        )

    async def _incarnations_for(self, plan: Plan) -> Mapping[str, str]:
        """Return the worker incarnations that decide on a plan's leases.

        A lease of an unknown incarnation may be of an earlier one, or of one that started since
        they were last read; only a read after the claim decides. A log that
        did not answer last is asked first: no lease runs out while it is away.
        """
        if self._outages.is_away or has_leases_of_earlier_incarnations(plan, self._incarnations):
            await self._read_incarnations()
        return self._incarnations

    async def _read_incarnations(self) -> None:
        self._incarnations = await self._outages.ask(self._ports.incarnations.current)

    async def _tried(self, decision: Decision) -> tuple[Plan | None, Refused | None]:
        """Append a decision; return the plan with it, or the refusal."""
        try:
            return await self._appended(decision), None
        except Refused as refused:
            return None, refused

    async def _appended(self, decision: Decision) -> Plan | None:
        """Append a decision; None if another process holds a claim it needs."""
        if not decision.events:
            return decision.plan
        receipt = await self._outages.ask(lambda: self._ports.store.append(decision.events))
        if not receipt.won:
            return None
        root = decision.plan.root
        pairs = zip(decision.events, receipt.events, strict=True)
        own = {stored.seq: stored.event_id for event, stored in pairs if event.root == root}
        return absorb_own(decision.plan, own)

    async def _store(self, plan: Plan, payloads: Iterable[tuple[PayloadRef, bytes]]) -> None:
        scope = Scope(plan.tenant_id, plan.organization_id)
        puts = [
            self._ports.payloads.put(scope, data, media_type=ref.media_type)
            for ref, data in payloads
        ]
        if puts:
            await asyncio.gather(*puts)

    async def _append_each(self, events: Iterable[NewEvent]) -> None:
        """Append events of other executions; ended ones refuse them."""
        for event in events:
            try:
                await self._ports.store.append([event])
            except Refused:
                continue

    async def _end(self, plan: Plan) -> None:
        """Reply to the caller, and keep only the id of an ended execution."""
        if plan.status != COMPLETED:
            await self._end_children(plan)
        if plan.reply_to is not None and not plan.is_replied:
            plan = await self._reply(plan, plan.reply_to)
        self._forget(plan.execution_id)
        self._ended[plan.execution_id] = max((plan.seq, *plan.ahead))

    async def _end_children(self, plan: Plan) -> None:
        """Cancel child executions that it did not wait for; these cancel theirs."""
        scope, now = Scope(plan.tenant_id, plan.organization_id), self._ports.clock.now()
        reason = f"execution {plan.execution_id}, which called it, ended {plan.status}"
        await self._append_each(
            orphaned(child, plan.execution_id, scope, reason, now=now, cause_id=plan.last_event_id)
            for child in await self._ports.families.open_children(plan.execution_id)
        )

    async def _reply(self, plan: Plan, reply_to: str) -> Plan:
        body: dict[str, Json] = {
            "execution_id": str(plan.execution_id),
            "path": plan.path,
            "status": plan.status,
            "result": plan.result,
            "error": plan.error,
        }
        ours = plan.execution_id in self.plans
        try:
            await self._ports.replies.send(
                reply_to, plan.execution_id, body, maybe_sent=not ours, since=plan.ended_at
            )
        except Refused as error:
            _log.warning("%s: no reply to %s: %s", plan.root, reply_to, error)
            return plan
        receipt = await self._ports.store.append(
            [
                NewEvent(
                    root=plan.root,
                    tenant_id=plan.tenant_id,
                    organization_id=plan.organization_id,
                    idempotency_key="reply.sent/1",
                    event_time=self._ports.clock.now(),
                    causation_id=plan.last_event_id,
                    **ReplySent(reply_to=reply_to).columns(),
                )
            ]
        )
        sent = {each.seq: each.event_id for each in receipt.events}
        return absorb_own(replace(plan, is_replied=True), sent)

    def _forget(self, execution_id: int) -> None:
        self.plans.drop(execution_id)
        self._watches.drop(execution_id)
        self._sender.drop(execution_id)
        self._floors.pop(execution_id, None)
