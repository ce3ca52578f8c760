import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from streams.data_folder import layout_of
from streams.local.errors import StackAlreadyUp
from streams.local.lock import hold, holder, still_held
from streams.local.service import ServiceState
from streams.local.state import (
    Phase,
    ServiceStatus,
    StackState,
    find_stack,
    read_state,
    read_supervised,
    write_state,
)
from streams.local.status import describe
from tests.support.servers.state_files import stack_state


@pytest.fixture
def state(tmp_path) -> StackState:
    return stack_state(tmp_path)


def test_what_is_written_is_read_back_the_same(state):
    write_state(state)
    assert read_state(state.data) == state
    assert find_stack(state.data) == state


def test_the_state_of_a_dead_supervisor_is_nothing(state):
    write_state(replace(state, supervisor_started_at=state.supervisor_started_at - 100))
    assert read_supervised(state.data) is None


def test_a_change_of_the_wall_clock_does_not_hide_a_stack(state, monkeypatch):
    write_state(state)
    create_time = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: create_time(self) + 32)
    assert find_stack(state.data) == state


def test_a_stack_that_is_still_starting_is_supervised_but_not_up(state):
    write_state(replace(state, phase=Phase.STARTING))
    assert read_supervised(state.data) is not None
    assert read_state(state.data) is None


def test_a_file_of_another_version_is_nothing(state):
    (state.data / "state.json").write_text('{"format": "other"}')
    assert read_supervised(state.data) is None


def test_only_the_owner_may_read_the_file(state):
    write_state(state)
    assert stat.S_IMODE((state.data / "state.json").stat().st_mode) == 0o600


def test_a_password_is_quoted_in_a_connection_string(state):
    assert state.postgres.dsn("noetl_read") == "postgresql://noetl_read:p%40ss%2F@127.0.0.1:5/noetl"


def test_the_status_shows_memory_and_no_secret(state):
    described = describe(state)
    assert described["parts"][0]["memory_bytes"] > 0
    assert "s3cret" not in str(described)


def test_the_status_tells_the_address_of_a_role_that_listens_and_lives(state):
    api, gone = (ServiceStatus(name, "1", "", Path("/log")) for name in ("api-0", "api-1"))
    (state.data / "roles").mkdir()
    for name, pid in (("api-0", os.getpid()), ("api-1", 4194305)):  # more than Linux gives
        fields = {"url": f"http://127.0.0.1/{name}", "pid": pid}
        (state.data / "roles" / f"{name}.json").write_text(json.dumps(fields))
    described = describe(replace(state, services=(*state.services, api, gone)))
    addresses = [service["address"] for service in described["parts"]]
    assert addresses == ["127.0.0.1:1", "http://127.0.0.1/api-0", ""]


def test_one_parts_change_leaves_the_others(state):
    other = ServiceStatus("s3", "1", "x", Path("/log"))
    both = replace(state, services=(*state.services, other))
    changed = both.with_service(replace(other, state=ServiceState.READY, restarts=3))
    assert [service.restarts for service in changed.services] == [0, 3]


def test_the_holder_of_a_folder_is_known_and_a_second_one_is_refused(tmp_path):
    layout = layout_of(tmp_path)
    with hold(layout) as lock:
        assert holder(layout) == psutil.Process()
        assert still_held(layout, lock)
        with pytest.raises(StackAlreadyUp, match="streams down"):
            hold(layout)


def test_a_deleted_folder_is_no_longer_held(tmp_path):
    layout = layout_of(tmp_path / "stack")
    with hold(layout) as lock:
        shutil.rmtree(layout.data)
        assert not still_held(layout, lock)
        layout.create()
        layout.lock.touch()
        assert not still_held(layout, lock)
