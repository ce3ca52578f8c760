"""A stack's own settings: the file acts on them, but says nothing of where the servers are."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.cli import bench_run
from streams.cli.stack import _parse_roles
from streams.local import prepare, stack
from streams.local.settings import load_own, load_settings
from streams.local.state import StackState, write_state
from streams.settings import BadSettings, Settings
from tests.support.servers.state_files import stack_state

FILE = """\
runtime: {tenant_id: "${MY_TENANT}"}
event_store:
  canonical_connection: {host: production, database: ledger, ssl_mode: require}
  connection: {url: "${PRODUCTION_KAFKA}"}
connect: {url: "http://production:8083"}
payload_store:
  backend: gcs
  encryption_at_rest: true
  cache: {tier_1_memory_mb: 7}
api: {url: "https://production"}
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackState:
    """A stack that is up in `.streams` of a folder whose file names other servers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMS_CONFIG", raising=False)
    monkeypatch.setenv("MY_TENANT", "acme")
    monkeypatch.setenv("STREAMS__FRAMES__WINDOW", "3")
    monkeypatch.setenv("STREAMS__CONNECT__URL", "http://elsewhere")
    Path("streams.yaml").write_text(FILE)
    data = tmp_path / ".streams"
    data.mkdir()
    state = stack_state(data)
    write_state(state)
    return state


def is_of_the_stack(settings: Settings) -> bool:
    database = settings.event_store.canonical_connection
    assert (settings.runtime.tenant_id, settings.frames.window) == ("acme", 3)
    assert settings.payload_store.cache.tier_1_memory_mb == 7
    return (
        (database.host, database.database, database.ssl_mode) == ("127.0.0.1", "noetl", "prefer")
        and settings.event_store.connection.url == "127.0.0.1:1"
        and settings.connect.url == "http://127.0.0.1:2"
        and (settings.payload_store.backend, settings.payload_store.encryption_at_rest)
        == ("s3", False)
        and settings.api.url is None
    )


def test_a_stack_of_our_own_is_where_it_is_whatever_the_file_says(state: StackState) -> None:
    loaded = load_own(state)
    assert is_of_the_stack(loaded.settings)
    assert loaded.origin_of("event_store.canonical_connection.host") == "stack"
    assert loaded.origin_of("runtime.tenant_id") == "streams.yaml:1"
    assert "streams.yaml:3" in {entry.origin for entry in loaded.overruled}
    assert "STREAMS__CONNECT__URL" in {entry.origin for entry in loaded.overruled}


def test_a_stack_that_was_named_is_where_the_work_goes(state: StackState) -> None:
    assert is_of_the_stack(load_settings(None, state.data).settings)


def test_a_stack_that_was_merely_found_lies_under_the_file(
    state: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRODUCTION_KAFKA", "kafka:9092")
    settings = load_settings(None, None).settings
    assert settings.event_store.canonical_connection.host == "production"
    assert settings.event_store.connection.url == "kafka:9092"


async def test_what_makes_servers_a_stack_works_on_these_servers(
    state: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _Reached(Exception):
        pass

    async def migrate(dsn: str) -> None:
        raise _Reached(dsn)

    said: list[str] = []
    monkeypatch.setattr(prepare, "migrate", migrate)
    with pytest.raises(_Reached, match=r"@127\.0\.0\.1:5/noetl"):
        await prepare.prepare(state, said.append)
    assert said == ["settings: streams.yaml:3 has other servers; this stack uses its own"]


async def test_a_bench_runs_on_the_stack_that_is_up(state: StackState) -> None:
    async with bench_run._stack(None, None, {}) as (settings, folder):
        assert is_of_the_stack(settings)
        assert folder == state.data


async def test_a_bench_with_a_file_runs_on_what_it_names(
    state: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRODUCTION_KAFKA", "kafka:9092")
    async with bench_run._stack(Path("streams.yaml"), None, {}) as (settings, _):
        assert settings.event_store.connection.url == "kafka:9092"


async def test_a_bench_without_a_stack_runs_one_of_its_own(
    state: StackState, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state.data / "state.json").unlink()
    begun: list[tuple[Path, dict[str, int]]] = []

    class _Running:
        def __init__(self, data: Path, roles: dict[str, int]) -> None:
            begun.append((data, roles))
            write_state(stack_state(data))

        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr(stack, "running", _Running)
    async with bench_run._stack(None, None, bench_run._roles(2)) as (settings, folder):
        assert is_of_the_stack(settings)
        assert begun[0][0] == folder
        assert begun[0][1]["worker"] == 2
        assert begun[0][1]["planner"] == 1
    assert not folder.exists()


def test_what_the_node_needs_is_known_without_the_addresses_of_others(state: StackState) -> None:
    assert "planner" in _parse_roles(None, None, "all")  # type: ignore[arg-type]


def test_what_else_is_wrong_with_the_file_is_still_said(state: StackState) -> None:
    Path("streams.yaml").write_text(FILE + "frames: {lease_seconds: none}\n")
    with pytest.raises(BadSettings, match=r"streams\.yaml:11: frames\.lease_seconds"):
        load_own(state)
