"""Postgres, Kafka and the object store are paused for longer than the watchdog's limit."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import orjson
import psutil
import pytest

from streams.data_folder import layout_of
from streams.local.state import find_stack
from tests.support.servers.runtime import Runtime, playbook, whole_runtime
from tests.support.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
STALL_S, LEASE_S, PAUSE_S, BACK_S = 9, 8, 16.0, 5.0
ROWS = 50
AWAY = {"postgres": "Postgres", "kafka": "Kafka", "s3": "the payload store"}
HOLDING = {
    "postgres": {"planner-0", "worker-0"},
    "kafka": {"planner-0", "worker-0", "projector-0", "trigger-0"},
    "s3": {"worker-0"},
}
"""The roles that must report a hold; others may."""
GIVE = """
import random, time

def main(n):
    time.sleep(0.1)
    return {"n": n, "text": "".join(chr(random.randint(48, 122)) for _ in range(100_000))}
"""
COMMITTED = """
SELECT count(*) >= $2 FROM noetl.event WHERE root_id = $1 AND event_type = 'frame.committed'"""
CHARGED = """
SELECT count(*) FROM noetl.event
WHERE root_id = $1 AND event_type IN ('frame.lease_expired', 'frame.failed', 'frame.abandoned')"""


@pytest.fixture(scope="module")
async def paused_runtime(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Runtime]:
    environment = {
        "STREAMS__RUNTIME__STALL_SECONDS": str(STALL_S),
        "STREAMS__FRAMES__LEASE_SECONDS": str(LEASE_S),
        "STREAMS__FRAMES__HEARTBEAT_SECONDS": "2",
    }
    async with whole_runtime(tmp_path_factory.mktemp("pause"), environment) as made:
        yield made


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Stop a server and all its children, and let them go on whatever happens."""
    parent = psutil.Process(pid)
    processes = [parent, *parent.children(recursive=True)]
    try:
        for one in processes:
            one.send_signal(signal.SIGSTOP)
        yield
    finally:
        for one in reversed(processes):
            if one.is_running():
                os.kill(one.pid, signal.SIGCONT)


def pids(runtime: Runtime) -> dict[str, int | None]:
    state = find_stack(runtime.data)
    assert state is not None
    return {part.name: part.pid for part in state.services}


def suspects(runtime: Runtime) -> list[object]:
    """Return what the journals of all roles name as suspect."""
    found: list[object] = []
    for path in layout_of(runtime.data).roles.rglob("*.journal"):
        found += orjson.loads(path.read_bytes().partition(b"\n")[0])["ended"]
    return found


def reported(runtime: Runtime, message: str, since: datetime) -> set[str]:
    """Return the roles whose logs have a message from `since` on."""
    logs = layout_of(runtime.data).log("x").parent.glob("*-0.log")
    found = set()
    for path in logs:
        lines = [
            line for line in path.read_text("utf-8", "replace").splitlines() if message in line
        ]
        if any(line[:19] >= since.strftime("%Y-%m-%d %H:%M:%S") for line in lines):
            found.add(path.stem)
    return found


def load(table: str) -> dict[str, Any]:
    """Return a playbook of many frames, each with rows in a table and an output in the store."""
    keep = {
        "kind": "postgres",
        "auth": "pg_local",
        "command": f"INSERT INTO {table} (n) SELECT :n FROM pg_sleep(0.1)",
        "params": {"n": "{{ iter.n }}"},
    }
    give = {"kind": "python", "args": {"n": "{{ iter.n }}"}, "code": GIVE}
    step = {
        "step": "save",
        "loop": {
            "in": f"{{{{ range({ROWS}) | list }}}}",
            "iterator": "n",
            "spec": {"mode": "parallel"},
            "frame_policy": {"size": 2},
        },
        "tool": [{"keep": keep}, {"give": give}],
    }
    return playbook(step)


@pytest.mark.parametrize("server", ["postgres", "kafka", "s3"])
async def test_a_paused_server_ends_nobody(paused_runtime: Runtime, server: str) -> None:
    runtime, table = paused_runtime, f"paused_{server}"
    await runtime.author(f"CREATE TABLE {table} (n int)")
    execution = await runtime.start(load(table))
    await runtime.until(COMMITTED, execution, 3)
    before, since = pids(runtime), datetime.now().astimezone()
    pid = before[server]
    assert pid is not None
    with paused(pid):
        await asyncio.sleep(PAUSE_S)
    resumed, seq = time.monotonic(), await runtime.seq(execution)
    assert not await runtime.has_ended(execution), "no work was left to go on with"

    async def moved() -> bool:
        return await runtime.seq(execution) > seq

    await until(moved, within_s=60)
    back_s = time.monotonic() - resumed
    end = await runtime.finish(execution)
    assert end.status == "COMPLETED", end
    rows = await runtime.author(f"SELECT n FROM {table} ORDER BY n")
    assert [row["n"] for row in rows] == list(range(ROWS))
    assert pids(runtime) == before
    assert suspects(runtime) == []
    assert await runtime.executions.connection.fetchval(CHARGED, execution) == 0
    holding = reported(runtime, f"{AWAY[server]} is away", since)
    assert holding >= HOLDING[server]
    await until(
        lambda: holding <= reported(runtime, f"{AWAY[server]} is back after", since), within_s=15
    )
    assert back_s <= BACK_S
