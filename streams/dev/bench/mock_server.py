"""The PFT workload's mock server and plain script, as separate processes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from streams.errors import Unavailable
from streams.local.process import die_with_parent
from streams.resources import folder

READY_S, END_S = 30.0, 10.0


class ProgramFailed(Unavailable):
    """A program of the bench failed."""

    def __init__(self, name: str, code: int | None, output: str) -> None:
        super().__init__(f"{name} exited with code {code}: {output.strip() or 'no output'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MockWorld:
    """Size and error rate of the mock server."""

    facilities: int
    patients: int
    rows_per_page: int = 1
    latency_ms: float = 0.0
    error_rate: float = 0.0
    timeout_rate: float = 0.0

    def options(self) -> list[str]:
        """Return the server's command-line options."""
        return [
            word
            for name in self.__slots__
            for word in (f"--{name.replace('_', '-')}", str(getattr(self, name)))
        ]


@dataclass(frozen=True, slots=True)
class Mock:
    """A running mock server."""

    url: str
    pid: int

    async def expected(self) -> dict[str, dict[str, int]]:
        """Return the expected requests and rows of a complete run, by kind."""
        found: dict[str, dict[str, int]] = await self._get("/expected")
        return found

    async def ledger(self, kind: str = "") -> dict[str, Any]:
        """Return what was served, with the rows of `kind`."""
        found: dict[str, Any] = await self._get(f"/ledger?kind={kind}" if kind else "/ledger")
        return found

    async def served(self) -> dict[str, list[list[str]]]:
        """Return key and text of every row that was served, by kind."""
        kinds = (await self.expected())["rows"]
        return {kind: (await self.ledger(kind))["keys"] for kind in kinds}

    async def _get(self, path: str) -> Any:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as response:
            response.raise_for_status()
            return orjson.loads(await response.read())


@asynccontextmanager
async def mock_server(world: MockWorld) -> AsyncIterator[Mock]:
    """Run a server with a fresh ledger during a block.

    Raises:
        ProgramFailed: it did not start.
    """
    server = await _start("pft.server", world.options())
    try:
        assert server.stdout is not None
        line = await asyncio.wait_for(server.stdout.readline(), READY_S)
        if not line:
            _, output = await server.communicate()
            raise ProgramFailed("the mock server", server.returncode, output.decode())
        yield Mock(orjson.loads(line)["url"], server.pid)
    finally:
        if server.returncode is None:
            server.terminate()
        await asyncio.wait_for(server.communicate(), END_S)


async def run_plain(
    mock: Mock, world: MockWorld, *, dsn: str, schema: str, timeout_s: float, client: str
) -> dict[str, float]:
    """Run the plain script with an HTTP client against a server and return its figures.

    Raises:
        ProgramFailed: it failed.
    """
    options = ["--api-url", mock.url, "--schema", schema, "--timeout-s", str(timeout_s)]
    options += ["--client", client]
    options += ["--facilities", str(world.facilities), "--patients", str(world.patients)]
    script = await _start("pft.plain", options, {"PFT_DSN": dsn})
    out, output = await script.communicate()
    if script.returncode != 0:
        raise ProgramFailed("the plain script", script.returncode, output.decode()[-2000:])
    figures: dict[str, float] = orjson.loads(out)
    return figures


async def _start(
    module: str, options: Sequence[str], env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *options),
        cwd=folder("examples"),
        env={**os.environ, **(env or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=die_with_parent(),
    )
