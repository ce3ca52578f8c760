"""Publisher of work items: once, and again while unclaimed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from streams.clock import Clock
from streams.execution.plan import Plan
from streams.kafka.work.item import WorkItem
from streams.kafka.work.port import WorkQueue
from streams.planner.items import waiting_ids, waiting_items
from streams.planner.limits import Rules

_Sending = tuple[int, int]
"""One attempt at one frame or command of an execution: entity, attempt."""


class Sender:
    """Publishes work items, and records when each unclaimed one was sent."""

    def __init__(self, queue: WorkQueue, clock: Clock, rules: Rules) -> None:
        self._queue, self._clock, self._rules = queue, clock, rules
        self._sent: dict[int, dict[_Sending, tuple[datetime, int]]] = {}

    async def publish(self, items: Sequence[WorkItem]) -> None:
        """Publish items, and return once they are durable.

        Raises:
            Unavailable: the broker does not accept them; retrying is safe.
        """
        if not items:
            return
        await self._queue.publish(items)
        now = self._clock.now()
        for item in items:
            sent = self._sent.setdefault(item.execution_id, {})
            _, times = sent.get(_sending(item), (now, 0))
            sent[_sending(item)] = (now, times + 1)

    def unclaimed(self, plan: Plan, now: datetime) -> list[WorkItem]:
        """Return items that were never sent, or so long ago that they may be lost."""
        sent, waiting, stale = self._sent.pop(plan.execution_id, {}), {}, []
        for item in waiting_items(plan):
            known = sent.get(_sending(item))
            if known is not None:
                waiting[_sending(item)] = known
            if known is None or now >= self._check_at(known):
                stale.append(item)
        if waiting:
            self._sent[plan.execution_id] = waiting
        return stale

    def check_at(self, plan: Plan) -> datetime | None:
        """Return when an item of a plan may be stale: now, if one was never sent."""
        sent, at = self._sent.get(plan.execution_id, {}), None
        for item in waiting_ids(plan):
            if (known := sent.get(item)) is None:
                return self._clock.now()
            stale_at = self._check_at(known)
            at = stale_at if at is None else min(at, stale_at)
        return at

    def drop(self, execution_id: int) -> None:
        """Forget an execution."""
        self._sent.pop(execution_id, None)

    def _check_at(self, known: tuple[datetime, int]) -> datetime:
        at, times = known
        doublings: int = min(max(times - 1, 0), 4)
        return at + self._rules.republish_after * (1 << doublings)


def _sending(item: WorkItem) -> _Sending:
    return item.entity_id, item.attempt
