"""A topic of each test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from streams.settings import Settings
from tests.support.kafka.topic import KafkaTopic


@pytest.fixture
async def topic(settings: Settings) -> AsyncIterator[KafkaTopic]:
    made = KafkaTopic(settings.event_store.connection.url)
    await made.open()
    yield made
    await made.close()
