"""Benchmark of one large result: a worker downloads and stores it, the API serves it.

It reports the peak memory of both processes (VmHWM, which can be reset).
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from streams.app import open_collector, open_payloads
from streams.collector.manual import end_execution
from streams.data_folder import layout_of
from streams.dev.bench.executions import open_executions
from streams.dev.bench.playbook_setup import register
from streams.dev.bench.report import Figure
from streams.events.model import PayloadRef
from streams.local.state import read_state
from streams.settings import Settings

PATH = "bench/through"
PLAYBOOK = f"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: through, path: {PATH}}}
workflow:
  - step: save
    tool:
      - page: {{kind: artifact, action: put, url: "{{{{ workload.url }}}}"}}
"""
ROLES = ("worker", "api")
STORED = """
SELECT result, payload_ref FROM noetl.event WHERE root_id = $1 AND event_type = 'result.stored'"""
_PIECE = 1 << 18


async def move_result(settings: Settings, folder: Path, megabytes: int) -> dict[str, Figure]:
    """Send one result of this size through the roles of the stack in `folder`.

    Raises:
        ValueError: the bytes differ.
    """
    roles = pids(folder)
    await register(settings, PLAYBOOK)
    async with open_executions(settings) as started, _source(megabytes) as (url, digest):
        idle = {name: memory_mb(pid, "VmRSS") for name, pid in roles.items()}
        for pid in roles.values():
            forget_peak(pid)
        ended = await started.run(PATH, {"url": url})
        if ended.status != "COMPLETED":
            raise ValueError(f"{PATH} ended as {ended.status}: {ended.error}")
        row = await started.connection.fetchrow(STORED, ended.execution_id)
        began = time.perf_counter()
        found = await _fetched(folder, orjson.loads(row["result"])["ref"])
        took = time.perf_counter() - began
    peaks = {name: memory_mb(pid, "VmHWM") for name, pid in roles.items()}
    async with open_collector(settings) as ports, open_payloads(settings) as store:
        await end_execution(ports, ended.execution_id)  # leaves no dangling references
        await store.delete(PayloadRef(**{**orjson.loads(row["payload_ref"]), "ipc": None}))
    if found != (megabytes << 20, digest.hexdigest()):
        raise ValueError(f"received {found[0]} bytes with the digest {found[1]}")
    return {
        "result_put_mb_per_s": round(megabytes / ended.wall_s, 1),
        "result_get_mb_per_s": round(megabytes / took, 1),
        **{f"{name}_idle_rss_mb": size for name, size in idle.items()},
        **{f"{name}_peak_rss_mb": size for name, size in peaks.items()},
    }


def memory_mb(pid: int, field: str) -> float:
    """Return a size from a process's status, such as VmRSS or VmHWM."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    (size,) = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return round(int(size) / 1024, 1)


def forget_peak(pid: int) -> None:
    """Reset a process's VmHWM to its current size."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", "ascii")


def has_roles(folder: Path) -> bool:
    """Return whether a stack with a worker and an API runs in `folder`."""
    return set(ROLES) <= pids(folder).keys()


def pids(folder: Path) -> dict[str, int]:
    """Return the processes of the stack in `folder` that handle a result."""
    state = read_state(folder)
    return {
        role: service.pid
        for service in (() if state is None else state.services)
        for role in ROLES
        if service.name == f"{role}-0" and service.pid is not None
    }


@asynccontextmanager
async def _source(megabytes: int) -> AsyncIterator[tuple[str, Any]]:
    """Serve new, half-compressible bytes; yield their digest."""
    digest = sha256()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(megabytes << 20)})
        await response.prepare(request)
        for _ in range((megabytes << 20) // _PIECE):
            piece = os.urandom(_PIECE // 2) + bytes(_PIECE // 2)
            digest.update(piece)
            await response.write(piece)
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", digest
    finally:
        await runner.cleanup()


async def _fetched(folder: Path, ref: str) -> tuple[int, str]:
    address = next(layout_of(folder).roles.glob("api*.json"))
    digest, length = sha256(), 0
    timeout = aiohttp.ClientTimeout(total=None, sock_read=300)
    async with (
        aiohttp.ClientSession(
            orjson.loads(address.read_bytes())["url"], timeout=timeout
        ) as session,
        session.get("/api/result/resolve", params={"ref": ref}) as answer,
    ):
        answer.raise_for_status()
        async for piece in answer.content.iter_any():
            digest.update(piece)
            length += len(piece)
    return length, digest.hexdigest()
