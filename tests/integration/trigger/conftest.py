"""A trigger process of each test's own, and a topic to feed it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from streams.app import open_log, open_pool, producer
from streams.clock import SystemClock
from streams.kafka.dead_letters import KafkaDeadLetters
from streams.payload.objects.memory import MemoryPayloadStore
from streams.schema.registry import MemoryRegistry
from streams.settings import Settings
from streams.trigger.avro import TriggerReader
from streams.trigger.interpreter import TriggerRecords
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.memory import MemoryPlaybookVersions
from streams.trigger.postgres import PostgresTriggerLedger
from tests.support.log.databases import dsn
from tests.support.subscription.process import SubscribedHouse
from tests.support.trigger.process import SCOPE, House, make_topic
from tests.support.trigger.records import HELLO


@pytest.fixture
def bootstrap(settings: Settings) -> str:
    return settings.event_store.connection.url


@pytest.fixture
def topic(bootstrap: str) -> str:
    """A trigger topic of this test's own."""
    return make_topic(bootstrap, "triggers", 2)


@pytest.fixture
async def house(database: Settings, bootstrap: str) -> AsyncIterator[House]:
    dead = make_topic(bootstrap, "dead")
    async with (
        open_log(database, role="triggers") as log,
        open_pool(dsn(database, "append")) as pool,
        KafkaDeadLetters(bootstrap, topic=dead) as dead_letters,
    ):
        yield House(
            PostgresTriggerLedger(
                pool,
                codec=log.codec,
                take_ids=log.ids.take,
                producer=producer(database, "triggers"),
            ),
            pool,
            playbooks=MemoryPlaybookVersions({"examples/hello": [HELLO]}),
            topic_ids=KafkaTopicIds(bootstrap, SystemClock()),
            payloads=MemoryPayloadStore(),
            dead_letters=dead_letters,
            interpreter=TriggerRecords(TriggerReader(MemoryRegistry()), SCOPE),
            take_ids=log.ids.take,
        )


@pytest.fixture
async def subscribed(database: Settings, bootstrap: str) -> AsyncIterator[SubscribedHouse]:
    """A trigger process with subscriptions."""
    dead = make_topic(bootstrap, "dead")
    async with (
        open_log(database, role="triggers") as log,
        KafkaDeadLetters(bootstrap, topic=dead) as letters,
    ):
        yield SubscribedHouse(database, log, letters, MemoryRegistry(), MemoryPayloadStore())
