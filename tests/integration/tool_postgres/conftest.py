"""The postgres tool on a real server, with a table and calls of each test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count

import asyncpg
import pytest

from streams.settings import Settings
from streams.worker.port import Call, Fence
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.postgres.tool import PostgresTool
from tests.support.log.databases import dsn
from tests.support.worker import tool_calls as calls

CALL = replace(calls.CALL, stage_id=7)

_ids = count(100)


@pytest.fixture
async def db(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database))
    await connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, v text)")
    yield connection
    await connection.close()


@pytest.fixture
async def tool(database: Settings) -> AsyncIterator[PostgresTool]:
    made = PostgresTool(
        ConfiguredCredentials({"pg": {"dsn": dsn(database)}}, {}), deployment="test"
    )
    yield made
    await made.close()


@pytest.fixture
def call() -> Call:
    """A call that no other test has made."""
    return replace(CALL, entity_id=next(_ids))


@pytest.fixture
def fence() -> Fence:
    return Fence(deployment="test", stage_id=7, frame_id=next(_ids), task="save")
