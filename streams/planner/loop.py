"""The planner's loop: folds events, appends decisions, publishes work. Has no rules itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cachetools import FIFOCache

from streams.errors import Inconsistent, Refused
from streams.events.errors import BadEvent
from streams.events.model import Event, Json, NewEvent, PayloadRef
from streams.events.types import ReplySent
from streams.execution.cancellation import orphaned
from streams.execution.evolve import Gap, absorb_own, evolve
from streams.execution.plan import COMPLETED, Plan
from streams.kafka.work.item import WorkItem
from streams.payload.port import Scope
from streams.planner.core import Decision, fail_refused
from streams.planner.decider import Decider
from streams.planner.draft import execution_root
from streams.planner.items import items_of, waiting_items
from streams.planner.leases import has_leases_of_earlier_incarnations
from streams.planner.limits import Rules
from streams.planner.log_outages import LogOutages
from streams.planner.port import PlannerPorts
from streams.planner.quarantine import Quarantine, all_as, last_events
from streams.planner.work_sender import Sender

_log = logging.getLogger(__name__)
_TRIES = 8
_ENDED_REMEMBERED = 100_000


class Planner:
    """Holds the plans of open executions and carries out what `decide` returns.

    A batch is folded, decided, its payloads stored, its events appended, its work published,
    and then acknowledged by the caller. After a crash it is repeated; every step is idempotent.
    """

    def __init__(self, ports: PlannerPorts, rules: Rules, *, name: str = "planner") -> None:
        self._ports, self._rules = ports, rules
        self.plans: dict[int, Plan] = {}
        self._floors: dict[int, datetime] = {}
        self._wake: dict[int, datetime] = {}
        self._incarnations: Mapping[str, str] = {}
        self._quarantine = Quarantine(ports, name)
        self._sender = Sender(ports.queue, ports.clock, rules)
        self._ended: FIFOCache[int, int] = FIFOCache(_ENDED_REMEMBERED)
        self._decider = Decider(ports, rules)
        self._outages = LogOutages(ports.clock, rules.lease_margin)

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
            found = [plan for key in ids if (plan := await self._folded(by_root[key])) is not None]
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
        self, execution_ids: Iterable[int], suspended: Mapping[int, int] | None = None
    ) -> None:
        """Take over open executions: read them from the log and publish their open work again.

        Those that are `suspended`, each since a `seq`, are ignored until an event resumes them.
        """
        await self._read_incarnations()
        saved = self._ports.tables.load()
        new = [key for key in execution_ids if key not in self.plans]
        left = {key: seq for key, seq in (suspended or {}).items() if key in new}
        for execution_id, seq in left.items():
            self._quarantine.add(execution_id, seq)

        async def take_over(ids: Sequence[int]) -> None:
            read = [await self._read_on(key, saved.get(key)) for key in ids]
            plans = [plan for plan in read if plan is not None]
            now = self._ports.clock.now()
            self._floors |= {plan.execution_id: now for plan in plans}
            await self._follow(plans)
            ours = [self.plans[key] for key in ids if key in self.plans]
            await self._sender.publish([item for plan in ours for item in waiting_items(plan)])

        ours = all_as("as it was taken over from the log", (key for key in new if key not in left))
        self._set_aside(await self._quarantine.handle_each("takeover", ours, take_over))
        self._ports.tables.save([], saved.keys() - self.plans.keys())

    def drop(self, execution_ids: Iterable[int]) -> None:
        """Drop executions that another planner has now."""
        gone = list(execution_ids)
        for execution_id in gone:
            self._forget(execution_id)
            self._quarantine.remove(execution_id)
        self._ports.tables.save([], gone)

    @property
    def known(self) -> frozenset[int]:
        """The executions it holds, including suspended ones."""
        return frozenset(self.plans) | self._quarantine.suspended

    async def tick(self) -> None:
        """Handle executions whose wake time has come."""
        await self._read_incarnations()
        now = self._ports.clock.now()
        due = [key for key in self.plans if self._is_due(key, now)]

        async def handle(ids: Sequence[int]) -> None:
            await self._follow([self.plans[key] for key in ids])

        self._set_aside(
            await self._quarantine.handle_each("time", all_as("as its time came", due), handle)
        )
        await self._sender.publish(self._sender.unclaimed(self.plans.values(), now))

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
        self._ports.tables.save([], execution_ids)

    def _is_due(self, execution_id: int, now: datetime) -> bool:
        at = self._wake.get(execution_id)
        return (at is not None and at <= now) or has_leases_of_earlier_incarnations(
            self.plans[execution_id], self._incarnations
        )

    async def _folded(self, events: Sequence[Event]) -> Plan | None:
        """Return an execution's plan after its events; None if they changed nothing."""
        plan: Plan | None = None
        for event in events:
            plan = await self._evolved(plan, event) or plan
        return plan

    async def _evolved(self, plan: Plan | None, event: Event) -> Plan | None:
        """Return the plan after `event`, reading missing events from the log."""
        execution_id = event.root.id
        before = plan or self.plans.get(execution_id)
        try:
            after = evolve(before, event)
        except Gap:
            found = await self._read_on(execution_id, before)
            if found is None:
                raise Inconsistent(f"{event.root}: the log does not have it") from None
            after = found
        return None if after is before and plan is None else after

    async def _read_on(self, execution_id: int, plan: Plan | None) -> Plan | None:
        """Fold the events in the log after `plan`."""
        root = execution_root(execution_id)
        async for event in self._ports.store.read_root(root, after_seq=plan.seq if plan else 0):
            plan = evolve(plan, event)
        return plan

    async def _follow(self, plans: Sequence[Plan]) -> None:
        """Decide for these plans and carry it out."""
        decided = await asyncio.gather(*(self._settled(plan) for plan in plans))
        ended = [plan for plan, _ in decided if plan.has_ended]
        suspended = [plan for plan, _ in decided if plan.is_suspended and not plan.has_ended]
        open_plans = [p for p, _ in decided if not p.has_ended and not p.is_suspended]
        # Recorded before it is sent: if the broker does not accept an item, the next tick retries.
        self.plans |= {plan.execution_id: plan for plan in open_plans}
        await self._sender.publish([item for _, items in decided for item in items])
        for plan in ended:
            await self._end(plan)
        for plan in suspended:
            self._forget(plan.execution_id)
            self._quarantine.add(plan.execution_id, plan.seq)
        gone = [plan.execution_id for plan in (*ended, *suspended)]
        self._ports.tables.save(open_plans, gone)

    async def _settled(self, plan: Plan) -> tuple[Plan, list[WorkItem]]:
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
                self._note_wake(settled.execution_id, decision.wake_at)
                return settled, items_of(settled, decision.events)
            later = await self._read_on(plan.execution_id, plan)
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

    def _note_wake(self, execution_id: int, wake_at: datetime | None) -> None:
        if wake_at is None:
            self._wake.pop(execution_id, None)
        else:
            self._wake[execution_id] = wake_at

    def _forget(self, execution_id: int) -> None:
        self.plans.pop(execution_id, None)
        self._wake.pop(execution_id, None)
        self._floors.pop(execution_id, None)
