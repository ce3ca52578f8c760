"""A trigger process with subscriptions, without servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import yaml

from streams.catalog.catalog import Catalog
from streams.catalog.memory import MemoryCatalogEvents, MemorySubscriptionEvents
from streams.catalog.subscription_state import ReplayRange, SubscriptionState
from streams.catalog.subscriptions import Subscriptions
from streams.clock import SystemClock
from streams.events.model import Event
from streams.ids import FixedWorkerId, Snowflakes
from streams.kafka.dead_letters import MemoryDeadLetters
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Notice, Record, TopicPartition
from streams.kafka.feed.process import RoleProcess
from streams.log.memory import MemoryEventStore
from streams.log.port import Frontier
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.schema.registry import MemoryRegistry
from streams.subscription.bodies import BodyReader
from streams.subscription.model import Subscription
from streams.trigger.memory import MemoryLedger, MemoryPlaybookVersions
from streams.trigger.port import PlaybookVersion
from streams.trigger.subscriptions.consumer import SubscriptionConsumer
from streams.trigger.subscriptions.port import SubscriptionPorts
from streams.trigger.subscriptions.replays import ReplayRunner
from streams.trigger.subscriptions.supervisor import SubscriptionSupervisor
from tests.support.events.examples import PRODUCER, codec
from tests.support.waiting import until

SCOPE = Scope("acme", "care")
GROUP = "noetl.subscription.shop.orders"


def document(spec: dict[str, Any] | None = None, path: str = "shop/orders") -> str:
    whole = {
        "apiVersion": "noetl.io/v1",
        "kind": "Subscription",
        "metadata": {"name": "orders", "path": path},
        "spec": {
            "source": "kafka",
            "topic": "orders",
            "dispatch": {"playbook": "shop/order"},
            **(spec or {}),
        },
    }
    return yaml.safe_dump(whole, sort_keys=False)


class MemoryTopicIds:
    """The ids of topics in memory; `recreate` gives a new one."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}

    async def topic_id(self, topic: str) -> str:
        if topic not in self.ids:
            raise FeedUnavailable(f"there is no topic {topic}")
        return self.ids[topic]

    def forget(self) -> None:
        return


class MemorySource:
    def __init__(self, shop: Shop, subscription: Subscription) -> None:
        self._shop, self._subscription = shop, subscription
        self.topic_ids = shop.topic_ids

    @asynccontextmanager
    async def feed(self, topic_id: str, on_assigned: Notice) -> AsyncIterator[MemoryFeed]:
        kafka = self._subscription.kafka
        assert kafka is not None
        self._shop.opened += 1
        yield MemoryFeed(
            self._shop.topics,
            [kafka.topic],
            group=kafka.group,
            on_assigned=on_assigned,
            idle_s=0.01,
            max_records=self._subscription.fetch_max,
        )

    @asynccontextmanager
    async def bodies(self) -> AsyncIterator[BodyReader]:
        yield BodyReader(self._shop.registry)

    async def records(self, replay: ReplayRange, first: int) -> AsyncIterator[Sequence[Record]]:
        log = self._shop.topics.logs[TopicPartition(replay.topic, replay.partition)]
        for one in log[first : replay.until_offset]:
            if one is not None:
                yield [one]


class Shop:
    """A catalog, a log, topics, and the consumers of subscriptions."""

    def __init__(self, partitions: int = 1) -> None:
        clock = SystemClock()
        ids = Snowflakes(clock, FixedWorkerId(1))
        self.log = MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock)
        events = MemoryCatalogEvents(self.log)
        self.catalog = Catalog(self.log, events, next_id=ids.next, clock=clock)
        every = MemorySubscriptionEvents(self.log)
        self.subscriptions = Subscriptions(self.log, events, every, self.catalog, clock)
        self.topics, self.topic_ids = MemoryTopics(partitions=partitions), MemoryTopicIds()
        self.topic_ids.ids["orders"] = "first"
        self.registry, self.opened = MemoryRegistry(), 0
        self.dead_letters = MemoryDeadLetters()
        self.ledger = MemoryLedger(self.log, clock)
        known = {name: [PlaybookVersion(7, 1)] for name in ("shop/order", "shop/return")}
        self.ports = SubscriptionPorts(
            open_source=self._open,
            ledger=self.ledger,
            playbooks=MemoryPlaybookVersions(known),
            payloads=MemoryPayloadStore(),
            dead_letters=self.dead_letters,
            take_ids=ids.take,
            clock=clock,
        )

    @asynccontextmanager
    async def _open(
        self, state: SubscriptionState, subscription: Subscription
    ) -> AsyncIterator[MemorySource]:
        yield MemorySource(self, subscription)

    async def register(self, spec: dict[str, Any] | None = None, path: str = "shop/orders") -> None:
        await self.catalog.register(SCOPE, document(spec, path))

    def write(self, *values: bytes | None, **where: Any) -> None:
        self.topics.write("orders", values, **where)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SubscriptionSupervisor]:
        """Run every subscription; a failure of one is raised."""
        process = RoleProcess(lambda _: MemoryJournalStorage(), watches_loop=False)
        replays = ReplayRunner(self.ports, inline_bytes=30_000)

        async def consume(state: SubscriptionState, subscription: Subscription) -> None:
            consumer = SubscriptionConsumer(
                self.ports, process, state, subscription, inline_bytes=30_000
            )
            await consumer.run()

        supervisor = SubscriptionSupervisor(self.subscriptions, consume, replays.run)
        task = asyncio.create_task(supervisor.run())
        try:
            yield supervisor
        finally:
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
        if isinstance(result, Exception):
            raise result

    async def events(self, *types: str) -> list[Event]:
        found = (await self.log.read_log(Frontier()))[0]
        return [event for event in found if event.type in types]

    async def started(self) -> list[Event]:
        return await self.events("playbook.initialized")

    async def workloads(self) -> list[Any]:
        contexts: list[Any] = [event.context for event in await self.started()]
        return [context["workload"] for context in contexts]

    async def until_started(self, count: int) -> None:
        async def enough() -> bool:
            return len(await self.started()) >= count

        await until(enough)
        await asyncio.sleep(0.05)
        assert len(await self.started()) == count

    @property
    def lag(self) -> int:
        return self.topics.lag(GROUP, "orders")
