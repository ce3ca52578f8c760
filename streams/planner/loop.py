"""The planner at work: events in, decisions appended, work published. No rules are made here."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from streams.envelope.model import Event, NewEvent, PayloadRef
from streams.errors import Inconsistent, PoisonRecord, Refused
from streams.execution.cancelling import orphaned
from streams.execution.evolve import Gap, absorb_own, evolve
from streams.execution.manifest import EVENTS, parts_of
from streams.execution.plan import COMPLETED, Plan
from streams.payload.port import Scope
from streams.payload.reading import MANIFEST, decode_manifest, encode_manifest, read_value
from streams.planner.core import Decision, decide, decide_ended, fail_unreadable
from streams.planner.draft import Moment, execution_root
from streams.planner.items import items_of, waiting_items
from streams.planner.needs import (
    Known,
    NeedsManifest,
    NeedsPayload,
    NeedsPlaybook,
    NeedsResult,
    Unreadable,
)
from streams.planner.port import Ports
from streams.planner.rules import LARGEST_EXPRESSION_PAYLOAD_BYTES, Rules
from streams.work.item import WorkItem

_log = logging.getLogger(__name__)
_TRIES = 8
_ENDED_KEPT = 100_000
_PAYLOADS_KEPT = 64


Sending = tuple[int, int, int]
"""One attempt at one frame or command: execution, entity, attempt."""


class Planner:
    """Keeps the plans of open executions and does what `decide` says.

    A batch goes: fold, decide, store payloads, append, publish, and only then is it
    acknowledged by the caller. A crash anywhere repeats it, and every step is a no-op then.
    """

    def __init__(self, ports: Ports, rules: Rules) -> None:
        self._ports, self._rules = ports, rules
        self.plans: dict[int, Plan] = {}
        self._floors: dict[int, datetime] = {}
        self._wake: dict[int, datetime] = {}
        self._published: dict[Sending, tuple[datetime, int]] = {}
        self._ended: OrderedDict[int, int] = OrderedDict()
        self._payloads: OrderedDict[str, Any] = OrderedDict()

    async def absorb(self, events: Sequence[Event]) -> list[int]:
        """Fold events of executions, in the order of the log, and do what follows.

        Returns the executions that changed.

        Raises:
            Unavailable: something is down; the same events may be given again.
        """
        changed: dict[int, Plan] = {}
        for event in events:
            if event.root.type != "execution" or self.has_absorbed(event.root.id, event.seq):
                continue
            plan = await self._evolved(changed.get(event.root.id), event)
            if plan is not None:
                changed[event.root.id] = plan
        await self._follow(list(changed.values()))
        return list(changed)

    def has_absorbed(self, execution_id: int, seq: int) -> bool:
        """Say whether the event at this place changes nothing any more."""
        plan = self.plans.get(execution_id)
        if plan is None:
            return seq <= self._ended.get(execution_id, 0)
        return seq <= plan.seq or seq in plan.ahead

    async def adopt(self, execution_ids: Iterable[int]) -> None:
        """Take over open executions: read them from the log and publish their open work again."""
        plans: list[Plan] = []
        kept = self._ports.tables.load()
        for execution_id in execution_ids:
            if execution_id in self.plans:
                continue
            plan = await self._read_on(execution_id, kept.get(execution_id))
            if plan is not None:
                self._floors[execution_id] = self._ports.clock.now()
                plans.append(plan)
        await self._follow(plans)
        ours = [self.plans[plan.execution_id] for plan in plans if plan.execution_id in self.plans]
        await self._publish([item for plan in ours for item in waiting_items(plan)])
        self._ports.tables.save([], kept.keys() - self.plans.keys())

    def drop(self, execution_ids: Iterable[int]) -> None:
        """Forget executions that another planner looks after now."""
        gone = list(execution_ids)
        for execution_id in gone:
            self._forget(execution_id)
        self._ports.tables.save([], gone)

    async def tick(self) -> None:
        """Do what the passing of time alone brings about."""
        now = self._ports.clock.now()
        due = [key for key, at in self._wake.items() if at <= now]
        await self._follow([self.plans[key] for key in due if key in self.plans])
        await self._publish(self._unclaimed(now))

    async def _evolved(self, plan: Plan | None, event: Event) -> Plan | None:
        """Return the plan after `event`, with what was missing before it read from the log."""
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
        """Fold what the log has after `plan`."""
        root = execution_root(execution_id)
        async for event in self._ports.store.read_root(root, after_seq=plan.seq if plan else 0):
            plan = evolve(plan, event)
        return plan

    async def _follow(self, plans: Sequence[Plan]) -> None:
        """Decide for these plans and make it so."""
        decided = await asyncio.gather(*(self._settled(plan) for plan in plans))
        open_plans = [plan for plan, _ in decided if not plan.has_ended]
        ended = [plan for plan, _ in decided if plan.has_ended]
        # Known before it is sent: should the broker not take an item, the next tick sends it.
        self.plans |= {plan.execution_id: plan for plan in open_plans}
        await self._publish([item for _, items in decided for item in items])
        for plan in ended:
            await self._end(plan)
        self._ports.tables.save(open_plans, [plan.execution_id for plan in ended])

    async def _settled(self, plan: Plan) -> tuple[Plan, list[WorkItem]]:
        """Return the plan once its decision is in the log, and the work it calls for."""
        for _ in range(_TRIES):
            decision = await self._decision(plan)
            await self._store(plan, decision.payloads)
            try:
                settled = await self._appended(decision)
            except Refused as refusal:
                refused: Refused | None = refusal
                settled = None
            else:
                refused = None
            if settled is not None:
                await self._tell(decision.told)
                self._note_wake(settled.execution_id, decision.wake_at)
                return settled, items_of(settled, decision.events)
            later = await self._read_on(plan.execution_id, plan)
            if later is None or (later is plan and refused is not None):
                raise Inconsistent(f"{plan.root}: its next events are refused: {refused}")
            plan = later
        raise Inconsistent(f"{plan.root}: somebody else keeps changing it; is a second planner up?")

    async def _appended(self, decision: Decision) -> Plan | None:
        """Append a decision; None when somebody else holds a claim it wanted."""
        if not decision.events:
            return decision.plan
        receipt = await self._ports.store.append(decision.events)
        if not receipt.won:
            return None
        root = decision.plan.root
        pairs = zip(decision.events, receipt.events, strict=True)
        return absorb_own(decision.plan, [kept.seq for event, kept in pairs if event.root == root])

    async def _decision(self, plan: Plan) -> Decision:
        """Ask `decide`, and find whatever it needs."""
        now = self._ports.clock.now()
        if plan.has_ended:
            return decide_ended(plan, now)
        try:
            playbook = await self._ports.playbooks.get(plan.catalog_id, plan.catalog_version)
        except Refused as error:
            return fail_unreadable(plan, self._rules, now, str(error))
        known = Known(self._payloads, {})
        while True:
            moment = Moment(
                playbook=playbook,
                rules=self._rules,
                now=now,
                floor=self._floors.get(plan.execution_id, plan.started_at),
                known=known,
            )
            try:
                return decide(plan, moment)
            except NeedsResult as need:
                self._remember(need.ref, await self._read(need.ref))
            except NeedsPayload as need:
                self._remember(need.ref, orjson.loads(await self._ports.payloads.get(need.ref)))
            except NeedsPlaybook as need:
                found = await self._find(plan, need)
                asked = (need.path, need.version)
                known = replace(known, playbooks={**known.playbooks, asked: found})
            except NeedsManifest as need:
                made = await self._manifest(plan, need.stage_id)
                known = replace(known, manifests={**known.manifests, need.stage_id: made})

    def _remember(self, ref: PayloadRef, value: Any) -> None:
        self._payloads[ref.sha256] = value
        while len(self._payloads) > _PAYLOADS_KEPT:
            self._payloads.popitem(last=False)

    async def _read(self, ref: PayloadRef) -> Any:
        """Return the data of a result, or why an expression cannot have it."""
        payloads, size = self._ports.payloads, ref.byte_length
        try:
            if ref.media_type == MANIFEST:
                parts = decode_manifest(await payloads.get(ref))
                size = sum(part.ref.byte_length for part in parts if part.ref is not None)
            if size > LARGEST_EXPRESSION_PAYLOAD_BYTES:
                why = f"has {size} bytes, too many to be read between steps"
                return Unreadable(f"{why}; select the fields you need in the step itself")
            return await read_value(payloads, ref)
        except PoisonRecord as error:
            return Unreadable(f"cannot be read: {error}")

    async def _manifest(self, plan: Plan, stage_id: int) -> bytes:
        """Say which payloads hold the rows of a stage, as the log has it."""
        events = self._ports.store.read_root(plan.root)
        parts = parts_of([one async for one in events if one.type in EVENTS], stage_id)
        data = encode_manifest(parts)
        # Stored now: the same decision may read the rows.
        scope = Scope(plan.tenant_id, plan.organization_id)
        await self._ports.payloads.put(scope, data, media_type=MANIFEST)
        return data

    async def _find(self, plan: Plan, need: NeedsPlaybook) -> tuple[int, int] | str:
        try:
            return await self._ports.playbooks.resolve(
                plan.tenant_id, plan.organization_id, need.path, need.version
            )
        except Refused as error:
            return str(error)

    async def _store(self, plan: Plan, payloads: Iterable[tuple[PayloadRef, bytes]]) -> None:
        scope = Scope(plan.tenant_id, plan.organization_id)
        puts = [
            self._ports.payloads.put(scope, data, media_type=ref.media_type)
            for ref, data in payloads
        ]
        if puts:
            await asyncio.gather(*puts)

    async def _tell(self, told: Iterable[NewEvent]) -> None:
        """Append what other executions learn; one that has ended does not want to know."""
        for event in told:
            try:
                await self._ports.store.append([event])
            except Refused:
                continue

    async def _publish(self, items: Sequence[WorkItem]) -> None:
        if not items:
            return
        await self._ports.queue.publish(items)
        now = self._ports.clock.now()
        for item in items:
            _, times = self._published.get(_sending(item), (now, 0))
            self._published[_sending(item)] = (now, times + 1)

    def _unclaimed(self, now: datetime) -> list[WorkItem]:
        """Return items that were never sent, or so long ago that their record may be lost."""
        waiting = [item for plan in self.plans.values() for item in waiting_items(plan)]
        sent, self._published = self._published, {}
        stale: list[WorkItem] = []
        for item in waiting:
            known = sent.get(_sending(item))
            if known is not None:
                self._published[_sending(item)] = known
            if known is None or now - known[0] >= self._patience(known[1]):
                stale.append(item)
        return stale

    def _patience(self, times: int) -> timedelta:
        """Say how long an item that was sent so often may wait."""
        doublings: int = min(max(times - 1, 0), 4)
        return self._rules.republish_after * (1 << doublings)

    async def _end(self, plan: Plan) -> None:
        """Tell who asked, and keep no more of an ended execution than its number."""
        if plan.status != COMPLETED:
            await self._end_children(plan)
        if plan.reply_to is not None and not plan.is_replied:
            plan = await self._reply(plan, plan.reply_to)
        self._forget(plan.execution_id)
        self._ended[plan.execution_id] = max((plan.seq, *plan.ahead))
        while len(self._ended) > _ENDED_KEPT:
            self._ended.popitem(last=False)

    async def _end_children(self, plan: Plan) -> None:
        """Cancel what the execution called and did not wait for; theirs follow in their turn."""
        scope, now = Scope(plan.tenant_id, plan.organization_id), self._ports.clock.now()
        reason = f"execution {plan.execution_id}, which called it, ended {plan.status}"
        await self._tell(
            orphaned(child, plan.execution_id, scope, reason=reason, now=now)
            for child in await self._ports.families.open_children(plan.execution_id)
        )

    async def _reply(self, plan: Plan, reply_to: str) -> Plan:
        body = {
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
                    type="reply.sent",
                    root=plan.root,
                    tenant_id=plan.tenant_id,
                    organization_id=plan.organization_id,
                    idempotency_key="reply.sent/1",
                    event_time=self._ports.clock.now(),
                    meta={"reply_to": reply_to},
                )
            ]
        )
        return absorb_own(replace(plan, is_replied=True), [each.seq for each in receipt.events])

    def _note_wake(self, execution_id: int, wake_at: datetime | None) -> None:
        if wake_at is None:
            self._wake.pop(execution_id, None)
        else:
            self._wake[execution_id] = wake_at

    def _forget(self, execution_id: int) -> None:
        self.plans.pop(execution_id, None)
        self._wake.pop(execution_id, None)
        self._floors.pop(execution_id, None)


def _sending(item: WorkItem) -> Sending:
    return item.execution_id, item.entity_id, item.attempt
