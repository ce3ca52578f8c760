"""The plans of open executions: all are known, and recent ones are in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from streams.errors import Unavailable
from streams.execution.plan import Plan
from streams.planner.port import Tables

RECENT = 1000
"""Plans in memory; more only while the tables do not have them."""


class PlanLost(Unavailable):
    """A part of a plan is missing in the tables: one changelog was lost, and others were not."""

    dependency = "the planner's tables"

    def __init__(self, execution_id: int) -> None:
        super().__init__(f"execution {execution_id}: the tables lost a part of its plan")
        self.execution_id = execution_id


class OpenPlans(Mapping[int, Plan]):
    """Plans by execution; those not in memory are read from the tables."""

    def __init__(self, tables: Tables, *, recent: int = RECENT) -> None:
        self._tables, self._most = tables, recent
        self._ids: dict[int, None] = {}
        self._recent: OrderedDict[int, Plan] = OrderedDict()

    def __getitem__(self, execution_id: int) -> Plan:
        if execution_id not in self._ids:
            raise KeyError(execution_id)
        if (plan := self._recent.get(execution_id)) is not None:
            self._recent.move_to_end(execution_id)
            return plan
        if (plan := self._tables.get(execution_id)) is None:
            raise PlanLost(execution_id)
        self._recent[execution_id] = plan
        self._evict()
        return plan

    def __contains__(self, execution_id: object) -> bool:
        return execution_id in self._ids

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def add_stored(self, execution_id: int) -> None:
        """Add an execution whose plan the tables have."""
        self._ids[execution_id] = None

    def put(self, plan: Plan) -> None:
        """Add or replace a plan."""
        self._ids[plan.execution_id] = None
        self._recent[plan.execution_id] = plan
        self._recent.move_to_end(plan.execution_id)

    def save(self, plans: Iterable[tuple[Plan, datetime | None]], ended: Iterable[int]) -> None:
        """Record open plans with their wake times, and the end of others, in the tables."""
        self._tables.save(plans, ended)
        self._evict()

    def drop(self, execution_id: int) -> None:
        """Forget an execution."""
        self._ids.pop(execution_id, None)
        self._recent.pop(execution_id, None)

    def _evict(self) -> None:
        """Drop the plans longest unused from memory, if the tables have them."""
        excess = len(self._recent) - self._most
        if excess <= 0:
            return
        for execution_id in list(self._recent)[: excess * 2]:
            if self._tables.release(self._recent[execution_id]):
                del self._recent[execution_id]
