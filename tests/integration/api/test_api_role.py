"""Projector and API as the processes they are: wired to the real log, Kafka and payloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from streams.app import Log
from streams.roles import api, projector
from streams.settings import Settings
from tests.support.api.server import PLAYBOOK
from tests.support.waiting import until

pytestmark = pytest.mark.stack
Run = Callable[[Settings, Path, asyncio.Event, Callable[[], None]], Awaitable[None]]


@asynccontextmanager
async def running(run: Run, settings: Settings, data: Path) -> AsyncIterator[None]:
    """Run a role until the body ends, then ask it to stop."""
    stop, ready = asyncio.Event(), asyncio.Event()
    (data / "roles").mkdir(exist_ok=True)
    task = asyncio.ensure_future(run(settings, data, stop, ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait((task, waiting), timeout=60, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert ready.is_set(), "the role is not ready"
    yield
    stop.set()
    await asyncio.wait_for(task, 30)


async def test_what_is_started_over_http_is_projected_from_kafka(
    settings: Settings, log: Log, tmp_path: Path
) -> None:
    path = f"examples/{log.ids.next()}"
    async with (
        running(projector.run, settings, tmp_path),
        running(api.run, settings, tmp_path),
        aiohttp.ClientSession() as session,
    ):
        (address_file,) = (tmp_path / "roles").glob("*.json")
        url = orjson.loads(address_file.read_bytes())["url"]
        registered = session.post(f"{url}/api/catalog", json={"content": PLAYBOOK, "path": path})
        async with registered as answer:
            assert answer.status == 201
        async with session.post(f"{url}/api/executions", json={"path": path}) as answer:
            execution_id = (await answer.json())["execution_id"]
        async with session.post(f"{url}/api/executions/{execution_id}/cancel") as answer:
            assert answer.status == 200
        async with session.get(f"{url}/api/executions/{execution_id}") as answer:
            assert (await answer.json())["status"] == "CANCELLED"
        await until(lambda: _listed(session, url, path), within_s=30)
    assert not address_file.exists()


async def _listed(session: aiohttp.ClientSession, url: str, path: str) -> bool:
    """Say whether the projection has the execution's end."""
    query = {"path": path, "status": "CANCELLED"}
    async with session.get(f"{url}/api/executions", params=query) as answer:
        return len((await answer.json())["executions"]) == 1
