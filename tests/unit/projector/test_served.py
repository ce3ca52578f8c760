"""The projector's table has the newest row of each execution, also after it was lost."""

from __future__ import annotations

import pytest

from streams.background import in_background
from streams.events.model import NewEvent
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.tables.memory import MemoryTables
from streams.kafka.tables.port import Changes as TableChanges
from streams.kafka.tables.port import PartitionLost, RowNotHere, TablesUnavailable
from streams.log.memory import MemoryEventStore
from streams.projector.loop import EXECUTION_TOPIC, Projector
from streams.projector.memory import MemoryProjections
from streams.projector.rows import Changes
from streams.projector.served import EXECUTIONS, ServedExecutions, TableFill
from streams.projector.views import Views, by_root
from streams.retry import retry
from tests.support.events.examples import codec
from tests.support.kafka.mirrored import mirror
from tests.support.projector.executions import Story, memory_log, stored_events
from tests.support.waiting import until

PARTITIONS = frozenset({0})


class _LostOnce(MemoryTables):
    """Tables whose first write finds another owner."""

    lost = 0

    async def write(self, partition: int, changes: TableChanges) -> None:
        if not self.lost:
            self.lost += 1
            raise PartitionLost(f"partition {partition} was revoked")
        await super().write(partition, changes)


def _served(tables: MemoryTables) -> ServedExecutions:
    return ServedExecutions(tables, lambda _: 0)


async def _changes(log: MemoryEventStore, *new: NewEvent) -> Changes:
    for event in new:
        await log.append([event])
    events = await stored_events(log, new[0].root)
    return (await Views(log).fold(by_root(events))).changes


async def test_the_newest_row_is_served_with_ids_as_text() -> None:
    served = _served(MemoryTables())
    await served.save(await _changes(memory_log(), *Story(1000).whole()), PARTITIONS)
    row = served.get(1000)
    assert row is not None
    assert (row["execution_id"], row["status"]) == ("1000", "COMPLETED")
    assert served.get(1001) is None


async def test_an_older_row_does_not_replace_a_newer_one() -> None:
    served, new = _served(MemoryTables()), Story(1000).whole()
    older = await _changes(memory_log(), *new[:3])
    await served.save(await _changes(memory_log(), *new), PARTITIONS)
    await served.save(older, PARTITIONS)
    row = served.get(1000)
    assert row is not None
    assert row["status"] == "COMPLETED"


async def test_rows_of_other_partitions_are_not_written() -> None:
    tables = MemoryTables(2)
    served = ServedExecutions(tables, lambda key: key % 2)
    await served.save(await _changes(memory_log(), *Story(1001).whole()), PARTITIONS)
    assert served.get(1001) is None


async def test_a_row_of_another_owner_is_refused() -> None:
    served = ServedExecutions(MemoryTables(1), lambda _: 3)
    with pytest.raises(RowNotHere, match="partition 3 is not assigned here"):
        served.get(1000)


async def test_a_row_in_another_format_is_replaced() -> None:
    tables = MemoryTables()
    await tables.write(0, {EXECUTIONS: {b"1000": b"0{}"}})
    served = _served(tables)
    assert served.get(1000) is None
    await served.save(await _changes(memory_log(), *Story(1000).whole()), PARTITIONS)
    assert served.get(1000) is not None


async def test_records_whose_partition_was_lost_are_projected_again() -> None:
    log, topics, tables = memory_log(), MemoryTopics(), _LostOnce()
    new = Story(1000).whole()
    for event in new:
        await log.append([event])
    mirror(topics, EXECUTION_TOPIC, await stored_events(log, new[0].root), new)
    feed = MemoryFeed(topics, [EXECUTION_TOPIC], group="projector")
    projector = Projector(
        feed,
        log,
        MemoryProjections(),
        codec(),
        shard_id="p-0",
        topic_ids={},
        served=_served(tables),
    )
    batch = await feed.next_batch()
    await projector.handle(batch)
    assert topics.lag("projector", EXECUTION_TOPIC) == len(new)

    await projector.handle(batch)
    assert topics.lag("projector", EXECUTION_TOPIC) == 0
    assert _served(tables).get(1000) is not None


async def test_a_lost_table_is_filled_from_the_log() -> None:
    log, tables = memory_log(), MemoryTables()
    for story in (Story(1000), Story(2000)):
        for event in story.whole():
            await log.append([event])
    served = _served(tables)
    assert served.incomplete() == PARTITIONS
    fill = TableFill(served, log)
    async with in_background(fill.run()):
        fill.check()
        await until(lambda: not served.incomplete(), within_s=5)
    assert served.get(1000) is not None
    assert served.get(2000) is not None


async def test_a_fill_whose_partition_was_lost_waits_for_the_next_assignment() -> None:
    log, tables = memory_log(), _LostOnce()
    for event in Story(1000).whole():
        await log.append([event])
    served = _served(tables)
    fill = TableFill(served, log)
    async with in_background(fill.run()):
        fill.check()
        await until(lambda: tables.lost, within_s=5)
        assert served.incomplete() == PARTITIONS
        fill.check()
        await until(lambda: not served.incomplete(), within_s=5)
    assert served.get(1000) is not None


class _AwayOnce(MemoryTables):
    """Tables whose first write fails for lack of a broker."""

    failures = 0

    async def write(self, partition: int, changes: TableChanges) -> None:
        if not self.failures:
            self.failures += 1
            raise TablesUnavailable("the broker is away")
        await super().write(partition, changes)


async def test_a_fill_that_lacked_a_broker_begins_again() -> None:
    log = memory_log()
    for event in Story(1000).whole():
        await log.append([event])
    served = _served(_AwayOnce())
    fill = TableFill(served, log)
    async with in_background(retry(fill.run)):
        fill.check()
        await until(lambda: not served.incomplete(), within_s=5)
    assert served.get(1000) is not None
