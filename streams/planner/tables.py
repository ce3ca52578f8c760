"""The planner's tables: executions, stages and frames, so that a restart reads little of the log.

A plan that cannot be read whole is read from the log instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from streams.execution.plan import Plan
from streams.kafka.tables.port import PartitionLost, StateTables, TablesUnavailable
from streams.planner.table_rows import (
    EXECUTIONS,
    PlanWrites,
    SavedPlan,
    add_changes,
    key_of,
    stored_watch,
    whole_plan,
)
from streams.planner.watch import Watch

PartitionOf = Callable[[int], int]


class PlanTables:
    """Plans by execution. `save` records what changed, `flush` writes it."""

    def __init__(self, tables: StateTables, partition_of: PartitionOf) -> None:
        self._tables, self._partition_of = tables, partition_of
        self._written: dict[int, Plan] = {}
        self._changed: dict[int, SavedPlan | None] = {}
        self._writing: dict[int, SavedPlan | None] = {}

    def watches(self) -> dict[int, Watch]:
        """Return the watch of every stored plan of the owned partitions."""
        found = {}
        for partition in self._tables.owned:
            for key, value in self._tables.scan(partition, EXECUTIONS):
                if (watch := stored_watch(value)) is not None:
                    found[int(key)] = watch
        return found

    def get(self, execution_id: int) -> Plan | None:
        """Return a plan as it was saved last; None if it cannot be read whole.

        Raises:
            TablesUnavailable: its partition is being assigned.
        """
        for changes in (self._changed, self._writing):
            if execution_id in changes:
                change = changes[execution_id]
                return None if change is None else change.plan
        if (written := self._written.get(execution_id)) is not None:
            return written
        partition = self._partition_of(execution_id)
        if partition not in self._tables.owned:
            raise TablesUnavailable(f"partition {partition} is being assigned")
        plan = self._stored(partition, execution_id)
        if plan is not None:
            self._written[execution_id] = plan
        return plan

    def save(self, plans: Iterable[tuple[Plan, datetime | None]], ended: Iterable[int]) -> None:
        """Record changes of open plans, and the end of others, for the next `flush`."""
        self._changed.update({plan.execution_id: SavedPlan(plan, at) for plan, at in plans})
        self._changed.update(dict.fromkeys(ended))

    def release(self, plan: Plan) -> bool:
        """Return whether the plan is written; then it is read from the tables when needed."""
        is_written = self._written.get(plan.execution_id) is plan
        if is_written and not self._is_changing(plan.execution_id):
            del self._written[plan.execution_id]
            return True
        return False

    def _is_changing(self, execution_id: int) -> bool:
        return execution_id in self._changed or execution_id in self._writing

    def forget(self, execution_ids: Iterable[int]) -> None:
        """Forget plans of revoked partitions, without deleting them."""
        for execution_id in execution_ids:
            self._written.pop(execution_id, None)
            self._changed.pop(execution_id, None)

    async def flush(self) -> None:
        """Write what changed; return once it is durable.

        Raises:
            TablesUnavailable: the changelog cannot be written now; flushing again is safe.
            ChangelogFailed: the changelogs cannot be written.
        """
        self._writing, self._changed = self._changed, {}
        by_partition: dict[int, dict[int, SavedPlan | None]] = {}
        for execution_id, saved in self._writing.items():
            by_partition.setdefault(self._partition_of(execution_id), {})[execution_id] = saved
        results = await asyncio.gather(
            *(self._flush(partition, plans) for partition, plans in by_partition.items()),
            return_exceptions=True,
        )
        self._writing = {}
        failed = [error for error in results if isinstance(error, BaseException)]
        if failed:
            raise failed[0]

    async def _flush(self, partition: int, plans: dict[int, SavedPlan | None]) -> None:
        writes, stored = PlanWrites(), set[int]()
        for execution_id, saved in plans.items():
            before = self._written.get(execution_id)
            if before is None:
                before = self._stored(partition, execution_id)
            if add_changes(writes, execution_id, before, saved):
                stored.add(execution_id)
        try:
            await self._tables.write(partition, writes.by_table)
        except PartitionLost:
            return  # its next owner reads these events again
        except BaseException:
            self._changed = {**plans, **self._changed}
            raise
        for execution_id, saved in plans.items():
            if execution_id in stored and saved is not None:
                self._written[execution_id] = saved.plan
            else:
                self._written.pop(execution_id, None)

    def _stored(self, partition: int, execution_id: int) -> Plan | None:
        """Return what the tables have of a plan."""
        if partition not in self._tables.owned:
            return None
        (value,) = self._tables.read(partition, EXECUTIONS, [key_of(execution_id)])
        read = partial(self._tables.read, partition)
        return None if value is None else whole_plan(value, read)
