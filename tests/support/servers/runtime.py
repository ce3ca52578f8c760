"""A whole runtime to try: the stack with every role, playbooks run on it, parts killed."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
import pytest
import yaml

from streams.app import open_log
from streams.data_folder import layout_of
from streams.dev.bench.executions import HEAD, LAST, ExecutionEnd, Executions, open_executions
from streams.dev.bench.log_counts import Counts, count
from streams.dev.bench.mock_server import Mock
from streams.dev.bench.pft import vary
from streams.dev.bench.playbook_setup import author_dsn, register
from streams.dev.bench.row_check import RowCheck, check_rows
from streams.events.model import Event, Root
from streams.local.service import ServiceState
from streams.local.settings import stack_settings
from streams.local.stack import running
from streams.local.state import ServiceStatus, find_stack
from streams.resources import folder
from streams.roles.start import existing_roles
from streams.settings import Settings, load
from tests.support.waiting import until

TIMEOUT_S = 90.0
"""The longest that anything may wait once the parts are back."""
FRAMES_ARE_OPEN_OR_ALL_IS_OVER = """
SELECT count(*) FILTER (WHERE event_type = 'frame.claimed')
     > count(*) FILTER (WHERE event_type IN ('frame.committed', 'frame.lease_expired'))
    OR count(*) FILTER (WHERE event_type IN ('playbook.completed', 'playbook.failed')) > 0
FROM noetl.event WHERE root_id = $1"""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A stack with all roles, and who starts executions on it."""

    data: Path
    settings: Settings
    executions: Executions

    async def run(self, playbook: Mapping[str, Any] | str, **workload: Any) -> ExecutionEnd:
        """Register a playbook, run it, and return how it ended; it never stalls for long."""
        return await self.finish(await self.start(playbook, **workload))

    async def start(self, playbook: Mapping[str, Any] | str, **workload: Any) -> int:
        """Register a playbook and start it; return the execution."""
        text = playbook if isinstance(playbook, str) else yaml.safe_dump(dict(playbook))
        await register(self.settings, text)
        path = yaml.safe_load(text)["metadata"]["path"]
        return await self.started(path, **workload)

    async def started(self, path: str, **workload: Any) -> int:
        """Publish a trigger for a registered playbook; return the execution."""
        return await self.executions.find(await self.executions.publish(path, workload))

    async def until(self, sql: str, *values: Any) -> None:
        """Wait until a question to the log is answered with true."""
        await until(lambda: self.executions.connection.fetchval(sql, *values), within_s=TIMEOUT_S)

    async def finish(self, execution_id: int) -> ExecutionEnd:
        """Wait for the end; fail when nothing happens for too long."""
        began = moved_at = time.monotonic()
        seen = 0
        while not (head := await self._head(execution_id))["terminal"]:
            if head["seq"] != seen:
                seen, moved_at = head["seq"], time.monotonic()
            waited = time.monotonic() - moved_at
            assert waited < TIMEOUT_S, f"{execution_id} waits for {waited:.0f} s after {seen}"
            await asyncio.sleep(0.1)
        last = await self.executions.connection.fetchrow(LAST, execution_id)
        assert last is not None
        return ExecutionEnd(execution_id, last["status"], last["error"], time.monotonic() - began)

    async def events(self, execution_id: int, *types: str) -> list[Event]:
        """Return an execution's events, of these types or all."""
        async with open_log(self.settings, role="test", lanes=1) as log:
            found = log.store.read_root(Root("execution", execution_id))
            return [event async for event in found if not types or event.type in types]

    async def seq(self, execution_id: int) -> int:
        """Return how many events an execution has."""
        return int((await self._head(execution_id))["seq"])

    async def has_ended(self, execution_id: int) -> bool:
        """Say whether the log has the end of an execution."""
        return bool((await self._head(execution_id))["terminal"])

    async def _head(self, execution_id: int) -> asyncpg.Record:
        found = await self.executions.connection.fetchrow(HEAD, execution_id)
        assert found is not None
        return found

    async def counts(self, execution_id: int) -> Counts:
        """Count what the log has of an execution."""
        return await count(self.executions.connection, execution_id)

    async def author(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """Ask the author's database."""
        connection = await asyncpg.connect(author_dsn(self.settings))
        try:
            return list(await connection.fetch(sql, *values))
        finally:
            await connection.close()

    async def check_rows(self, mock: Mock, schema: str) -> RowCheck:
        """Compare the tables with the ledger; a row that was never asked for is missing, too."""
        rows = sum((await mock.expected())["rows"].values())
        connection = await asyncpg.connect(author_dsn(self.settings))
        try:
            found = await check_rows(connection, schema, await mock.served())
        finally:
            await connection.close()
        return replace(found, expected=rows, missing=found.missing + rows - found.expected)

    def api(self) -> str:
        """Return the address of the API."""
        (address_file,) = layout_of(self.data).roles.glob("api-*.json")
        url: str = orjson.loads(address_file.read_bytes())["url"]
        return url

    def part(self, name: str) -> ServiceStatus:
        """Return how a part is now."""
        state = find_stack(self.data)
        assert state is not None, "the stack has gone"
        return next(part for part in state.services if part.name == name)

    async def kill(self, name: str, signal: int = signal.SIGKILL) -> float:
        """Kill a part, or ask it to end; return how long its supervisor took to have it back."""
        before = await self._ready(name, lambda _: True)
        assert before.pid is not None
        os.kill(before.pid, signal)
        began = time.monotonic()
        await self._ready(name, lambda now: now.restarts > before.restarts)
        return time.monotonic() - began

    async def _ready(self, name: str, fits: Callable[[ServiceStatus], bool]) -> ServiceStatus:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                now = self.part(name)
                if now.state is ServiceState.READY and fits(now):
                    return now
                await asyncio.sleep(0.05)


@asynccontextmanager
async def whole_runtime(data: Path, environment: Mapping[str, str]) -> AsyncIterator[Runtime]:
    """Run a stack with every role, whose processes are given this environment, too."""
    async with AsyncExitStack() as held:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            roles = dict.fromkeys(existing_roles(), 1)
            await held.enter_async_context(running(data, profile="full", roles=roles, sinks=False))
        yield await held.enter_async_context(kept_runtime(data))


@asynccontextmanager
async def kept_runtime(data: Path) -> AsyncIterator[Runtime]:
    """Use the stack that is up in a folder."""
    state = find_stack(data)
    assert state is not None, f"no stack is up in {data}"
    settings = load(env={}, stack=stack_settings(state)).settings
    async with open_executions(settings) as executions:
        yield Runtime(data, settings, executions)


def pft(path: str, frame_size: int) -> str:
    """Return the PFT playbook under another path, with frames of this size."""
    text = (folder("examples") / "pft" / "playbook.yaml").read_text("utf-8")
    return vary(text, path=path, frame_size=frame_size)


def playbook(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return a playbook of these steps, under a path of its own."""
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "test", "path": f"test/{uuid4().hex}"},
        "workflow": list(steps),
    }
