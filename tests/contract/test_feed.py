"""What every feed promises, over each adapter; Kafka's needs the real broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.kafka.feed.kafka import KafkaFeed
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition


class World(Protocol):
    """A topic of two partitions, a group that reads it, and a way to end a reader."""

    topic: str

    async def write(self, *values: str, partition: int = 0, transaction: str = "") -> None: ...
    async def reader(self, **options: Any) -> Any: ...
    async def crash(self, reader: Any) -> None: ...
    async def lag(self) -> int: ...


class MemoryWorld:
    def __init__(self) -> None:
        self.topic = "things"
        self._topics = MemoryTopics(partitions=2)

    async def write(self, *values: str, partition: int = 0, transaction: str = "") -> None:
        encoded = [value.encode() for value in values]
        self._topics.write(self.topic, encoded, partition=partition, transaction=transaction)

    async def reader(self, **options: Any) -> MemoryFeed:
        return MemoryFeed(self._topics, [self.topic], group="readers", idle_s=0.01, **options)

    async def crash(self, reader: MemoryFeed) -> None:
        pass

    async def lag(self) -> int:
        return self._topics.lag("readers", self.topic)


class KafkaWorld:
    def __init__(self, bootstrap: str) -> None:
        self.topic, self.group = f"noetl.test.{uuid4().hex}", f"noetl.test.{uuid4().hex}"
        self.bootstrap = bootstrap
        self._stack = AsyncExitStack()
        self._readers: dict[int, AsyncExitStack] = {}

    async def open(self) -> None:
        self._admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await self._admin.start()
        self._stack.push_async_callback(self._admin.close)
        await self._admin.create_topics([NewTopic(self.topic, 2, 1)])
        self._plain = await self._producer()
        self._transactional = await self._producer(transactional_id=self.topic)

    async def _producer(self, **options: Any) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, **options)
        await producer.start()
        self._stack.push_async_callback(producer.stop)
        return producer

    async def close(self) -> None:
        for stack in list(self._readers.values()):
            await stack.aclose()
        await self._admin.delete_topics([self.topic])
        await self._stack.aclose()

    async def write(self, *values: str, partition: int = 0, transaction: str = "") -> None:
        producer = self._transactional if transaction else self._plain
        if transaction:
            await producer.begin_transaction()
        for value in values:
            await producer.send_and_wait(self.topic, value.encode(), partition=partition)
        if transaction == "committed":
            await producer.commit_transaction()
        elif transaction:
            await producer.abort_transaction()

    async def reader(self, **options: Any) -> KafkaFeed:
        stack = AsyncExitStack()
        feed = KafkaFeed(
            self.bootstrap,
            [self.topic],
            **{"group": self.group, "instance": "one", "idle_s": 0.1, **options},
        )
        await stack.enter_async_context(feed)
        self._readers[id(feed)] = stack
        return feed

    async def crash(self, reader: KafkaFeed) -> None:
        # What a kill leaves behind: no last commit, no farewell.
        reader._app.consumer.readings.freeze()
        await self._readers.pop(id(reader)).aclose()

    async def lag(self) -> int:
        found = await self._admin.list_consumer_group_offsets(self.group)
        ends = await self._ends([KafkaPartition(self.topic, number) for number in range(2)])
        at = {partition: found[partition].offset for partition in ends if partition in found}
        return sum(end - max(0, at.get(partition, 0)) for partition, end in ends.items())

    async def _ends(self, partitions: Sequence[KafkaPartition]) -> dict[KafkaPartition, int]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed"
        )
        await consumer.start()
        try:
            return dict(await consumer.end_offsets(list(partitions)))
        finally:
            await consumer.stop()


@pytest.fixture
async def world(bootstrap: str | None) -> AsyncIterator[World]:
    if bootstrap is None:
        yield MemoryWorld()
        return
    made = KafkaWorld(bootstrap)
    await made.open()
    yield made
    await made.close()


async def take(reader: Any, count: int, seconds: float = 15.0) -> list[Record]:
    """Read until `count` records have come."""
    found: list[Record] = []
    async with asyncio.timeout(seconds):
        while len(found) < count:
            for records in (await reader.next_batch()).values():
                found += records
    return found


async def nothing_comes(reader: Any, seconds: float = 0.6) -> bool:
    """Tell whether a reader stays idle for a while."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if await reader.next_batch():
            return False
    return True


async def until(holds: Callable[[], Any], reader: Any, seconds: float = 10.0) -> None:
    """Keep reading until something holds, as an agent's pump would."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await reader.next_batch()


def values(records: Sequence[Record]) -> list[str]:
    return [record.value.decode() for record in records if record.value is not None]


async def test_records_come_in_order_with_their_place_and_offset(world: World) -> None:
    await world.write("a", "b", "c")
    records = await take(await world.reader(), 3)
    assert values(records) == ["a", "b", "c"]
    assert [record.offset for record in records] == [0, 1, 2]
    assert {record.topic_partition for record in records} == {TopicPartition(world.topic, 0)}


async def test_what_was_not_acknowledged_comes_again_after_a_crash(world: World) -> None:
    await world.write("a", "b")
    first = await world.reader()
    await take(first, 2)
    await world.crash(first)
    assert values(await take(await world.reader(), 2)) == ["a", "b"]


async def test_what_was_acknowledged_does_not_come_again(world: World) -> None:
    await world.write("a", "b")
    first = await world.reader()
    first.acknowledge(await take(first, 2))
    await until(lambda: lag_is(world, 0), first)
    await world.crash(first)
    second = await world.reader()
    assert await nothing_comes(second)
    await world.write("c")
    assert values(await take(second, 1)) == ["c"]


async def lag_is(world: World, lag: int) -> bool:
    return await world.lag() == lag


async def test_a_record_that_hangs_is_not_lost_when_its_neighbours_are_acknowledged(
    world: World,
) -> None:
    await world.write("a", "hangs", "c", "d")
    first = await world.reader()
    records = await take(first, 4)
    first.acknowledge([records[3], records[2], records[0]])
    await until(lambda: lag_is(world, 3), first)
    await world.crash(first)
    assert values(await take(await world.reader(), 3)) == ["hangs", "c", "d"]


async def test_aborted_transactions_are_never_delivered(world: World) -> None:
    await world.write("kept", transaction="committed")
    await world.write("never", transaction="aborted")
    await world.write("also kept", transaction="committed")
    reader = await world.reader()
    assert values(await take(reader, 2)) == ["kept", "also kept"]
    assert await nothing_comes(reader)


@pytest.mark.parametrize("outcome", ["committed", "aborted"])
async def test_an_idle_transactional_topic_shows_no_lag(world: World, outcome: str) -> None:
    await world.write("a", transaction="committed")
    reader = await world.reader()
    reader.acknowledge(await take(reader, 1))
    await world.write("b", partition=1, transaction=outcome)
    if outcome == "committed":
        reader.acknowledge(await take(reader, 1))
    await until(lambda: lag_is(world, 0), reader)
    assert reader.standing().behind == 0


async def test_a_partition_with_too_many_unfinished_records_waits_and_goes_on(
    world: World,
) -> None:
    await world.write(*"abcdefgh")
    await world.write("other", partition=1)
    # One record a batch: a batch of several may carry a partition past its bound.
    reader = await world.reader(max_span=4, max_records=1)
    records = await take(reader, 5)
    held = [record for record in records if record.topic_partition.partition == 0]
    assert values(held) == ["a", "b", "c", "d"], "and the other partition is not held up"
    assert await nothing_comes(reader)
    reader.acknowledge(held)
    assert values(await take(reader, 4)) == ["e", "f", "g", "h"]


async def test_standing_shows_what_waits_and_counts_what_is_finished(world: World) -> None:
    await world.write("a", "b")
    reader = await world.reader()
    records = await take(reader, 2)
    reader.acknowledge(records[:1])

    async def stands() -> bool:
        return (reader.standing().behind, reader.standing().progress) == (1, 1)

    await until(stands, reader)


async def test_the_reader_is_told_its_places_before_their_records(world: World) -> None:
    reported: list[Any] = []

    async def on_assigned(partitions: frozenset[TopicPartition]) -> None:
        reported.append(partitions)

    await world.write("a")
    await take(await world.reader(on_assigned=on_assigned), 1)
    assert reported == [frozenset({TopicPartition(world.topic, 0), TopicPartition(world.topic, 1)})]


async def test_a_reader_that_fails_to_prepare_its_places_hears_of_it(world: World) -> None:
    async def on_assigned(_: frozenset[TopicPartition]) -> None:
        raise RuntimeError("no room")

    await world.write("a")
    reader = await world.reader(on_assigned=on_assigned)
    with pytest.raises(RuntimeError, match="no room"):
        await take(reader, 1)
