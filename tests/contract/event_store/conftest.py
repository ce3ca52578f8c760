"""Which event store: in memory, or in Postgres with either sealer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from streams.app import open_log
from streams.clock import SystemClock
from streams.dev.scratch_database import scratch_database
from streams.ids import FixedWorkerId, Snowflakes
from streams.log.memory import MemoryEventStore
from streams.log.port import EventStore
from streams.settings import Settings
from tests.support.events.examples import PRODUCER, codec
from tests.support.events.stores import Subject


@pytest.fixture(scope="session")
async def postgres(settings: Settings, migrated: Settings) -> AsyncIterator[Settings]:
    async with scratch_database(settings, like=migrated) as database:
        yield database


@pytest.fixture(
    params=[
        "memory",
        pytest.param("postgres", marks=pytest.mark.stack),
        pytest.param("postgres, sealed in Python", marks=pytest.mark.stack),
    ]
)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings | None:
    """Which adapter; the servers are started only where they are needed."""
    if request.param == "memory":
        return None
    if request.param == "postgres, sealed in Python":
        monkeypatch.setattr("streams.events.sealer.native", lambda: None)
    settings: Settings = request.getfixturevalue("postgres")
    return settings


@pytest.fixture
async def subject(place: Settings | None) -> AsyncIterator[Subject]:
    if place is None:
        ids = Snowflakes(SystemClock(), FixedWorkerId(1))
        clock = SystemClock()
        yield Subject(
            MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock),
            ids.next,
        )
    else:
        async with open_log(place, role="test") as log:
            yield Subject(log.store, log.ids.next)


@pytest.fixture
def store(subject: Subject) -> EventStore:
    return subject.store


@pytest.fixture
def root(subject: Subject) -> int:
    """A root id that is new to the store."""
    return subject.next_id()
