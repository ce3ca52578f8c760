"""Publisher of work items: once, and again while unclaimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from streams.clock import Clock
from streams.execution.plan import Plan
from streams.kafka.work.item import WorkItem
from streams.kafka.work.port import WorkQueue
from streams.planner.items import waiting_items
from streams.planner.limits import Rules

_Sending = tuple[int, int, int]
"""One attempt at one frame or command: execution, entity, attempt."""


class Sender:
    """Publishes work items, and records when each unclaimed one was sent."""

    def __init__(self, queue: WorkQueue, clock: Clock, rules: Rules) -> None:
        self._queue, self._clock, self._rules = queue, clock, rules
        self._sent: dict[_Sending, tuple[datetime, int]] = {}

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
            _, times = self._sent.get(_sending(item), (now, 0))
            self._sent[_sending(item)] = (now, times + 1)

    def unclaimed(self, plans: Iterable[Plan], now: datetime) -> list[WorkItem]:
        """Return items that were never sent, or so long ago that they may be lost."""
        waiting = [item for plan in plans for item in waiting_items(plan)]
        sent, self._sent = self._sent, {}
        stale: list[WorkItem] = []
        for item in waiting:
            known = sent.get(_sending(item))
            if known is not None:
                self._sent[_sending(item)] = known
            if known is None or now - known[0] >= self._republish_after(known[1]):
                stale.append(item)
        return stale

    def _republish_after(self, times: int) -> timedelta:
        """Return how long an item sent this often may stay unclaimed."""
        doublings: int = min(max(times - 1, 0), 4)
        return self._rules.republish_after * (1 << doublings)


def _sending(item: WorkItem) -> _Sending:
    return item.execution_id, item.entity_id, item.attempt
