"""What every work queue promises, over each adapter; Kafka's needs the real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest
from aiohttp.test_utils import unused_port
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.kafka.feed.kafka import KafkaFeed
from streams.kafka.feed.port import Record
from streams.kafka.names import work_topic
from streams.kafka.work.item import WorkItem
from streams.kafka.work.memory import MemoryWorkQueue
from streams.kafka.work.port import WorkQueue
from streams.kafka.work.queue import KafkaWorkQueue, WorkUnavailable
from streams.settings import Settings

Received = Callable[[int], Awaitable[list[tuple[bytes | None, WorkItem]]]]
POOL = f"test-{uuid4().hex}"


def item(entity_id: int, pool: str = POOL) -> WorkItem:
    return WorkItem(
        kind="frame",
        tenant_id="acme",
        organization_id="care",
        execution_id=2**62 + 1,
        entity_id=entity_id,
        attempt=1,
        version=1,
        step="fetch",
        pool=pool,
        catalog_id=7,
        catalog_version=1,
        cursor={"kind": "list", "from": 0, "to": 50},
    )


@pytest.fixture
async def queue(bootstrap: str | None) -> AsyncIterator[tuple[WorkQueue, Received]]:
    """A queue, and what its pool's workers receive."""
    if bootstrap is None:
        records: list[tuple[bytes | None, WorkItem]] = []
        yield (
            MemoryWorkQueue(lambda _, key, value: records.append((key, WorkItem.decode(value)))),
            lambda count: _at_least(records, count),
        )
        return
    topic = work_topic(POOL)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 2, 1)])
    feed = KafkaFeed(bootstrap, [topic], group=POOL, instance="one", idle_s=0.1)
    async with KafkaWorkQueue(bootstrap) as made, feed:
        yield made, lambda count: _read(feed, count)
    await admin.delete_topics([topic])
    await admin.close()


async def _at_least(
    records: list[tuple[bytes | None, WorkItem]], count: int
) -> list[tuple[bytes | None, WorkItem]]:
    assert len(records) >= count
    return records


async def _read(feed: KafkaFeed, count: int) -> list[tuple[bytes | None, WorkItem]]:
    found: list[Record] = []
    while len(found) < count:
        for records in (await feed.next_batch()).values():
            found += records
    return [(one.key, WorkItem.decode(one.value or b"")) for one in found]


async def test_items_arrive_as_they_were_published_keyed_by_their_entity(
    queue: tuple[WorkQueue, Received],
) -> None:
    sent = [item(2**62 + number) for number in range(100)]
    await queue[0].publish(sent)
    received = await queue[1](len(sent))
    assert sorted((one for _, one in received), key=lambda one: one.entity_id) == sent
    assert all(key == str(one.entity_id).encode() for key, one in received)


async def test_what_is_published_again_arrives_again(
    queue: tuple[WorkQueue, Received],
) -> None:
    for _ in range(3):
        await queue[0].publish([item(5), item(6)])
    received = await queue[1](6)
    assert [one.entity_id for _, one in received].count(5) == 3


async def test_publishing_nothing_is_fine(queue: tuple[WorkQueue, Received]) -> None:
    await queue[0].publish([])


async def test_no_broker_is_unavailable_and_says_what_to_do() -> None:
    with pytest.raises(WorkUnavailable, match=r"check that Kafka is up"):
        async with KafkaWorkQueue(f"127.0.0.1:{unused_port()}"):
            pass


@pytest.mark.stack
async def test_a_pool_that_nobody_declared_gets_its_topic(settings: Settings) -> None:
    bootstrap, pool = settings.event_store.connection.url, f"new-{uuid4().hex}"
    async with KafkaWorkQueue(bootstrap) as queue:
        await queue.publish([item(1, pool)])
        await queue.publish([item(2, pool)])
    async with KafkaFeed(
        bootstrap, [work_topic(pool)], group=pool, instance="one", idle_s=5.0
    ) as feed:
        found: list[Record] = []
        while len(found) < 2:
            found += [one for records in (await feed.next_batch()).values() for one in records]
    assert {WorkItem.decode(one.value or b"").entity_id for one in found} == {1, 2}
