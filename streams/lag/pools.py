"""Reads the backlog of each pool from its work topic and the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from streams.kafka.names import WORK_PREFIX
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.lag.backlog import WorkBacklog, backlog_of
from streams.lag.first_records import NextRecord, Partition
from streams.lag.kafka import ClusterLag
from streams.lag.log import LagLog
from streams.lag.meaning import WORKER_PREFIX
from streams.lag.model import GroupReading

ITEMS_COUNT = 2000
"""Items read of each partition; what is behind them is not counted."""


async def pool_backlogs(
    cluster: ClusterLag, log: LagLog, readings: Mapping[str, GroupReading]
) -> tuple[WorkBacklog, ...]:
    """Return the backlog of every pool that has a work topic.

    A pool that no worker has served is read from the start of its topic.

    Raises:
        BrokerUnavailable, LogUnavailable: Kafka or Postgres does not respond.
    """
    limits = await cluster.offset_limits(WORK_PREFIX)
    committed = {
        (one.topic, one.partition): one.committed
        for reading in readings.values()
        if reading.group.startswith(WORKER_PREFIX)
        for one in reading.partitions
        if one.committed is not None
    }
    positions = {
        one: max(its.start, committed.get(one, its.start))
        for one, its in limits.items()
        if committed.get(one, its.start) < its.stable_end
    }
    found = await cluster.peek(positions, is_committed=True, most=ITEMS_COUNT)
    by_pool: dict[str, dict[Partition, Sequence[NextRecord]]] = defaultdict(dict)
    for one in limits:
        by_pool[one[0].removeprefix(WORK_PREFIX)][one] = found.get(one, ())
    return tuple([await _backlog(pool, records, log) for pool, records in sorted(by_pool.items())])


async def _backlog(
    pool: str, records: Mapping[Partition, Sequence[NextRecord]], log: LagLog
) -> WorkBacklog:
    items = [item for its in records.values() for item in map(_item, its) if item is not None]
    states = await log.item_states(items) if items else {}
    is_whole = all(len(its) < ITEMS_COUNT for its in records.values())
    return backlog_of(pool, items, states, is_whole=is_whole)


def _item(record: NextRecord) -> WorkItem | None:
    """Return a record's item; a worker quarantines what is none."""
    try:
        return WorkItem.decode(record.value or b"")
    except BadWorkItem:
        return None
