"""Which adapter a contract is tried on; servers are started only where they are needed."""

from __future__ import annotations

import pytest

from streams.settings import Settings


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.stack)])
def place(request: pytest.FixtureRequest) -> Settings | None:
    """A database of the module's own; None for memory."""
    return None if request.param == "memory" else request.getfixturevalue("database")


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.stack)])
def bootstrap(request: pytest.FixtureRequest) -> str | None:
    """Where Kafka is; None for memory."""
    if request.param == "memory":
        return None
    settings: Settings = request.getfixturevalue("settings")
    return settings.event_store.connection.url
