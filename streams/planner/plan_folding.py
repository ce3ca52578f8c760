"""Plans from events: those of a batch, and those that only the log has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streams.errors import Inconsistent
from streams.events.model import Event
from streams.execution.evolve import Gap, evolve
from streams.execution.plan import Plan
from streams.log.port import EventStore
from streams.planner.draft import execution_root


class PlanFolding:
    """Folds events into the known plans, reading missing ones from the log."""

    def __init__(self, log: EventStore, known: Mapping[int, Plan]) -> None:
        self._log, self._known = log, known

    async def folded(self, events: Sequence[Event]) -> Plan | None:
        """Return an execution's plan after its events; None if they changed nothing."""
        plan: Plan | None = None
        for event in events:
            plan = await self._evolved(plan, event) or plan
        return plan

    async def _evolved(self, plan: Plan | None, event: Event) -> Plan | None:
        execution_id = event.root.id
        before = plan or self._known.get(execution_id)
        try:
            after = evolve(before, event)
        except Gap:
            found = await self.read_on(execution_id, before)
            if found is None:
                raise Inconsistent(f"{event.root}: the log does not have it") from None
            after = found
        return None if after is before and plan is None else after

    async def read_on(self, execution_id: int, plan: Plan | None) -> Plan | None:
        """Fold the events in the log after `plan`."""
        root = execution_root(execution_id)
        async for event in self._log.read_root(root, after_seq=plan.seq if plan else 0):
            plan = evolve(plan, event)
        return plan
