"""Subscriptions of a trigger process on a real Kafka and Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import orjson
from aiokafka import AIOKafkaProducer

from streams.app import Log, catalog_of, subscriptions_of, trigger_ledger_of
from streams.catalog.subscription_state import SubscriptionState
from streams.clock import SystemClock
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.kafka.feed.crash_journal import MemoryJournalStorage
from streams.kafka.feed.process import RoleProcess
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.roles.subscriptions import open_supervisor
from streams.schema.registry import MemoryRegistry
from streams.settings import Settings
from streams.subscription.model import Subscription
from streams.trigger.interpreter import TriggerRecords
from streams.trigger.lookup import LedgerReader
from streams.trigger.loop import TriggerPorts
from streams.trigger.memory import FixedTopicIds, MemoryPlaybookVersions
from streams.trigger.port import PlaybookVersion
from streams.trigger.subscriptions.standing import SubscribedTopicReader
from tests.support.subscription.memory import SCOPE, document
from tests.support.waiting import until


async def send_records(
    bootstrap: str, topic: str, *records: dict[str, Any], partition: int = 0
) -> None:
    """Send records, each with its key, value and headers."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=2 << 20) as sender:
        for record in records:
            await sender.send_and_wait(topic, partition=partition, **record)


@dataclass
class SubscribedHouse:
    """A log, a Kafka, and whatever a trigger process needs for subscriptions."""

    settings: Settings
    log: Log
    dead_letters: KafkaDeadLetters
    registry: MemoryRegistry
    payloads: MemoryPayloadStore
    path: str = ""

    @property
    def bootstrap(self) -> str:
        return self.settings.event_store.connection.url

    @property
    def pool(self) -> asyncpg.Pool:
        return self.log.pool

    async def register(self, topic: str, spec: dict[str, Any] | None = None) -> None:
        self.path = f"shop/{topic}"
        text = document({"topic": topic, **(spec or {})}, self.path)
        await catalog_of(self.log).register(SCOPE, text)

    @asynccontextmanager
    async def running(self, instance: str = "trigger-0") -> AsyncIterator[None]:
        """Run every subscription of the log as one process; cancelled like a killed one."""
        runtime = self.settings.runtime.model_copy(update={"shard_id": instance})
        settings = self.settings.model_copy(update={"runtime": runtime})
        process = RoleProcess(lambda _: MemoryJournalStorage(), watches_loop=False)
        unused: Any = None
        ports = TriggerPorts(
            feed=unused,
            ledger=trigger_ledger_of(self.log, settings, "triggers"),
            playbooks=MemoryPlaybookVersions({"shop/order": [PlaybookVersion(7, 1)]}),
            topic_ids=FixedTopicIds(),
            payloads=self.payloads,
            dead_letters=self.dead_letters,
            interpreter=TriggerRecords(unused, Scope("a", "b")),
            take_ids=self.log.ids.take,
            clock=SystemClock(),
        )
        supervisor = open_supervisor(settings, process, self.log, self.registry, ports)
        task = asyncio.create_task(supervisor.run())
        try:
            yield
        finally:
            task.cancel()
            (result,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(result, Exception):
            raise result

    async def subscribed(self) -> tuple[SubscriptionState, Subscription]:
        subscriptions = subscriptions_of(self.log)
        state = await subscriptions.find(SCOPE, self.path)
        return state, replace(await subscriptions.document(state))

    async def topic(self) -> tuple[SubscriptionState, SubscribedTopicReader, LedgerReader]:
        state, subscription = await self.subscribed()
        assert subscription.kafka is not None
        reader = SubscribedTopicReader(self.bootstrap, subscription.kafka, SystemClock())
        return state, reader, LedgerReader(self.pool)

    async def lag(self) -> int:
        state, topic, ledger = await self.topic()
        return sum(one.lag for one in await topic.lags(state, ledger))

    async def rows(self) -> list[asyncpg.Record]:
        """Return the first event of every record of the subscription, by offset."""
        state, _ = await self.subscribed()
        found = await self.pool.fetch(
            "SELECT l.reader, l.partition, l.record_offset, e.event_type, e.root_id, e.context,"
            " e.error FROM noetl.trigger_ledger l"
            " JOIN noetl.event e ON e.root_id = coalesce(l.execution_id, l.rejected_id)"
            " AND e.seq = 1 WHERE split_part(l.reader, '.', 1) = $1"
            " ORDER BY l.partition, l.record_offset",
            str(state.catalog_id),
        )
        return list(found)

    async def workloads(self) -> list[Any]:
        return [
            orjson.loads(row["context"])["workload"]
            for row in await self.rows()
            if row["context"] is not None
        ]

    async def until_rows(self, count: int) -> None:
        async def enough() -> bool:
            return len(await self.rows()) >= count

        await until(enough, within_s=90, every_s=0.1)
        assert len(await self.rows()) == count

    async def until_caught_up(self) -> None:
        async def caught_up() -> bool:
            return await self.lag() == 0

        await until(caught_up, within_s=90, every_s=0.2)
