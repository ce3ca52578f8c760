"""Counts of executions that a planner has ended."""

from __future__ import annotations

from collections.abc import Iterator

from streams.execution.plan import Plan
from streams.metrics.declared import EXECUTION_SECONDS
from streams.metrics.metric import Distribution, Sample


class PlannerCounts:
    """Wall times of ended executions, by status."""

    def __init__(self) -> None:
        self._seconds: dict[str, Distribution] = {}

    def ended(self, plan: Plan) -> None:
        """Count the end of an execution."""
        if plan.ended_at is None:
            return
        seconds = self._seconds.get(plan.status)
        if seconds is None:
            seconds = self._seconds[plan.status] = Distribution(EXECUTION_SECONDS.bounds)
        seconds.observe((plan.ended_at - plan.started_at).total_seconds())

    def samples(self) -> Iterator[Sample]:
        """Yield the wall times."""
        for status, seconds in self._seconds.items():
            yield Sample(EXECUTION_SECONDS, seconds, (status,))
