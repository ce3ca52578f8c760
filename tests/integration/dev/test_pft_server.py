"""The mock server answers, fails as configured, and keeps its ledger."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from examples.pft.server import address, serve
from examples.pft.world import KINDS, Faults, World
from tests.support.servers.shared import REPOSITORY

WORLD = World(facilities=2, patients=10)


@asynccontextmanager
async def client(
    faults: Faults, *, latency_s: float = 0.0, timeout_s: float = 5.0
) -> AsyncIterator[aiohttp.ClientSession]:
    server = await serve(WORLD, faults, latency_s=latency_s)
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    async with server, aiohttp.ClientSession(address(server), timeout=timeout) as session:
        yield session


async def get_all(session: aiohttp.ClientSession, path: str) -> int:
    """Ask until there is an answer; return how often it took."""
    for attempt in range(1, 20):
        try:
            async with session.get(path) as response:
                await response.read()
                if response.status == 200:
                    return attempt
                assert response.status == 503
        except TimeoutError:
            pass
    raise AssertionError(f"{path} never answered")


async def test_the_ledger_names_every_row_that_was_served() -> None:
    async with client(Faults()) as session:
        for kind in KINDS:
            for path in WORLD.paths(kind):
                assert await get_all(session, path.decode()) == 1
        ledgers = {kind: await (await session.get(f"/ledger?kind={kind}")).json() for kind in KINDS}
        expected = await (await session.get("/expected")).json()

    assert {kind: len(ledger["keys"]) for kind, ledger in ledgers.items()} == expected["rows"]
    assert ledgers["assessments"]["rows"] == sum(expected["rows"].values()) == 2 * 10 * 12 + 8
    assert ledgers["assessments"]["requests"] == sum(expected["requests"].values())
    assert ["assessments/2/10/4/0", "true"] in ledgers["assessments"]["keys"]


async def test_a_busy_or_silent_server_answers_when_asked_again_and_counts_it() -> None:
    paths = [path.decode() for path in WORLD.paths("conditions")]
    async with client(Faults(busy_rate=0.3, silent_rate=0.05, seed=3), timeout_s=1.0) as session:
        tries = await asyncio.gather(*(get_all(session, path) for path in paths))
        ledger = await (await session.get("/ledger")).json()

    assert ledger["rows"] == len(paths)
    assert ledger["requests"] == ledger["answered"] + sum(ledger["faults"].values())
    assert set(ledger["faults"]) == {"busy", "silent"}
    # A busy machine may make our own timeout end too early; then there are more tries.
    assert sum(tries) >= len(paths) + sum(ledger["faults"].values())


async def test_what_a_client_did_not_wait_for_was_not_served() -> None:
    async with client(Faults(), latency_s=0.3, timeout_s=0.05) as session:
        with pytest.raises(TimeoutError):
            await session.get("/facilities/1/patients/1/demographics")
        await asyncio.sleep(0.4)
        patient = aiohttp.ClientTimeout(total=5)
        ledger = await (await session.get("/ledger", timeout=patient)).json()

    assert ledger["rows"] == 0


async def test_an_unknown_path_is_not_found() -> None:
    async with client(Faults()) as session, session.get("/facilities/9/patients/1/x") as response:
        assert response.status == 404


async def test_the_program_says_where_it_is_and_ends_when_told() -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.pft.server", "--patients", "1"),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdout is not None
    url = json.loads(await program.stdout.readline())["url"]
    async with aiohttp.ClientSession() as session, session.get(f"{url}/expected") as response:
        assert (await response.json())["rows"]["vital_signs"] == 10
    program.send_signal(signal.SIGTERM)

    assert await asyncio.wait_for(program.wait(), 10) == 0
