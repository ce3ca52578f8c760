"""What tests share: one set of real servers, fresh databases, and events to append."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadScopeScheduling

from streams.app import Log, open_log
from streams.dev.scratch_database import scratch_database
from streams.events.model import NewEvent, Root
from streams.settings import Settings
from tests.support.servers.shared import servers

NewEventFactory = Callable[..., NewEvent]
SERVERS = "the servers of one process"
APART = (
    "tests/integration/local/test_stack.py",
    "tests/acceptance/test_demo.py",
    "tests/acceptance/test_pft_sealed.py",
)
"""Tests that start servers of their own and judge no times: another process may take them."""
OWN_SERVERS = ("tests/acceptance/one_runtime", "tests/acceptance/test_pause.py")
"""Tests that start servers of their own. They come first: the shared ones run to the end."""
WITHOUT_SERVERS = (
    "tests/unit",
    "tests/agent",
    "tests/contract/test_import_mode.py",
    "tests/integration/payload/test_sharing.py",
    "tests/integration/worker/test_tool_http.py",
    "tests/integration/worker/test_tool_python.py",
    "tests/integration/sinks/test_sink_bigquery.py",
    "tests/integration/sinks/test_sink_duckdb.py",
    "tests/integration/sinks/test_sink_files.py",
    "tests/integration/sinks/test_sink_graph.py",
    "tests/integration/sinks/test_sink_kv.py",
    "tests/integration/sinks/test_sink_snowflake.py",
)
"""Tests that need no servers, so that any process may take them."""
# How long an example takes says more about the machine than about the code.
hypothesis_settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("any machine")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Let parallel processes take whole groups of tests, one after the other."""
    return Groups(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests with servers first, because they take longest."""
    items.sort(key=lambda item: turn_of(item.nodeid))


class Groups(LoadScopeScheduling):
    """Which tests stay together in one process.

    Most tests with servers do: two stacks at once take turns on two cores.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if path.startswith((*APART, *WITHOUT_SERVERS)) else SERVERS


def turn_of(nodeid: str) -> int:
    """Return when a test comes: with servers of one process, with others, without."""
    order = (*OWN_SERVERS, "tests/acceptance", "tests/contract", "tests/integration", *APART)
    turns = [turn for turn, path in enumerate(order) if nodeid.startswith(path)]
    if nodeid.startswith(APART):
        return max(turns)
    return len(order) if nodeid.startswith(WITHOUT_SERVERS) else min(turns, default=len(order))


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


@pytest.fixture
def registry_url(settings: Settings) -> str:
    """Where the schema registry is."""
    url = settings.serialization.schema_registry.url
    assert url is not None
    return url


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
