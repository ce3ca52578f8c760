"""The plain script saves exactly what was served; and the row check reports it if it did not."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator

import aiohttp
import asyncpg
import pytest

from examples.pft.plain import run
from examples.pft.server import address, serve
from examples.pft.world import KINDS, Faults, World
from streams.dev.bench.row_check import RowCheck, check_rows
from streams.settings import Settings

pytestmark = pytest.mark.stack
WORLD = World(facilities=2, patients=20, rows_per_page=10)
ROWS = sum(WORLD.expected()["rows"].values())


@pytest.fixture
async def saved(
    empty_database: Settings,
) -> AsyncIterator[tuple[asyncpg.Connection, dict[str, list[list[str]]]]]:
    """A database that the script has filled, and the ledger of the server it asked."""
    dsn = empty_database.event_store.canonical_connection.dsn("owner")
    server = await serve(WORLD, Faults(busy_rate=0.05, silent_rate=0.01))
    async with server:
        given = {"schema": "pft_plain", "facilities": 2, "patients": 20, "concurrency": 8}
        given["client"] = "aiohttp"
        url = address(server)
        figures = await run(Namespace(api_url=url, dsn=dsn, timeout_s=0.5, **given))
        assert figures["rows"] == ROWS
        assert figures["retries"] > 0
        async with aiohttp.ClientSession(url) as session:
            ledger = {
                kind: (await (await session.get(f"/ledger?kind={kind}")).json())["keys"]
                for kind in KINDS
            }
    connection = await asyncpg.connect(dsn)
    try:
        yield connection, ledger
    finally:
        await connection.close()


async def test_the_script_saves_every_row_once_and_as_it_was(
    saved: tuple[asyncpg.Connection, dict[str, list[list[str]]]],
) -> None:
    judgement = await check_rows(saved[0], "pft_plain", saved[1])

    assert judgement == RowCheck(expected=ROWS, saved=ROWS)
    assert judgement.faults("plain") == []


async def test_the_judge_finds_each_kind_of_wrong_row(
    saved: tuple[asyncpg.Connection, dict[str, list[list[str]]]],
) -> None:
    connection, ledger = saved
    await connection.execute(
        """
        SET search_path = pft_plain;
        DELETE FROM conditions WHERE row_key IN ('conditions/1/1/1/0', 'conditions/1/1/1/1');
        INSERT INTO medications SELECT * FROM medications WHERE row_key = 'medications/1/1/1/0';
        INSERT INTO vital_signs (row_key, value) VALUES ('vital_signs/9/9/9/9', 'x');
        UPDATE demographics SET value = value || ' ' WHERE row_key = 'demographics/1/1/1/0';
        UPDATE assessments SET value = NULL WHERE row_key = 'assessments/1/1/1/0';
        """
    )

    judgement = await check_rows(connection, "pft_plain", ledger)

    assert judgement == RowCheck(
        expected=ROWS, saved=ROWS, missing=2, doubled=1, unasked=1, altered=2
    )
    assert judgement.faults("we")[0] == "we: 2 rows missing"
