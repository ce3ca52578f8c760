"""What tests share: one set of real servers, fresh databases, and events to append."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from streams.app import Log, open_log
from streams.dev.scratch_database import scratch_database
from streams.events.model import NewEvent, Root
from streams.settings import Settings
from tests.support.servers.shared import servers

NewEventFactory = Callable[..., NewEvent]
SERVERS = "servers"
STACKS_OF_THEIR_OWN = (
    "acceptance/one_runtime",
    "acceptance/test_pft_sealed.py",
    "acceptance/test_demo.py",
    "integration/test_stack.py",
)
"""Tests that start servers of their own, the longest first."""
# How long an example takes says more about the machine than about the code.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tell parallel processes which tests stay together, those that take longest first.

    What uses the shared servers runs in one process, so that they are started once; a file
    is never divided, so that its fixtures are made once.
    """
    if not hasattr(config, "workerinput"):
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    for own in STACKS_OF_THEIR_OWN:
        if path.startswith(own):
            return own
    uses_servers = "settings" in getattr(item, "fixturenames", ())
    return SERVERS if uses_servers or item.get_closest_marker("stack") else path


def _turn(item: pytest.Item) -> int:
    group = next(mark.args[0] for mark in item.iter_markers("xdist_group"))
    order = (SERVERS, *STACKS_OF_THEIR_OWN)
    return order.index(group) if group in order else len(order)


@pytest.fixture(scope="session")
async def settings(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Settings]:
    """Where the real servers are; started once for the whole run."""
    async with servers(tmp_path_factory.mktemp("stack")) as found:
        yield found


@pytest.fixture
async def log(settings: Settings) -> AsyncIterator[Log]:
    """The real log, open for appending."""
    async with open_log(settings, role="test") as opened:
        yield opened


@pytest.fixture(scope="session")
async def migrated(settings: Settings) -> AsyncIterator[Settings]:
    """Settings that name a migrated database to be copied: nobody connects to it."""
    async with scratch_database(settings) as made:
        yield made


@pytest.fixture(scope="module")
async def database(settings: Settings, migrated: Settings) -> AsyncIterator[Settings]:
    """Settings that name a migrated database of this module's own."""
    async with scratch_database(settings, like=migrated) as own:
        yield own


@pytest.fixture
async def empty_database(settings: Settings) -> AsyncIterator[Settings]:
    """Settings that name a database of this test's own, with nothing in it."""
    async with scratch_database(settings, migrated=False) as own:
        yield own


@pytest.fixture
async def fresh_database(settings: Settings, migrated: Settings) -> AsyncIterator[Settings]:
    """Settings that name a migrated database of this test's own."""
    async with scratch_database(settings, like=migrated) as own:
        yield own


@pytest.fixture
def new_event() -> NewEventFactory:
    """Make events that keep every rule; a test changes what it is about."""
    return make_event


_numbers = count(1)


def make_event(root_id: int = 1, type: str = "playbook.initialized", **changes: Any) -> NewEvent:
    """Return an event of an execution; without other words, its first."""
    fields: dict[str, Any] = {
        "tenant_id": "acme",
        "organization_id": "care",
        "idempotency_key": f"key-{next(_numbers)}",
        "event_time": datetime(2026, 5, 16, 12, 34, 56, 789000, tzinfo=UTC),
        "meta": {"path": "examples/hello", "version": 1} if type == "playbook.initialized" else {},
    }
    return NewEvent(type=type, root=Root("execution", root_id), **{**fields, **changes})
