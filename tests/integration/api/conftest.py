"""An API on the real log and the real tables of a module, and a client that asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer

from streams.api.server import make_app
from streams.settings import Settings
from tests.support.api.server import PLAYBOOK, SCOPE, Client, Stand, open_stand


@pytest.fixture(scope="module")
async def stand(database: Settings) -> AsyncIterator[Stand]:
    async with open_stand(database) as opened:
        await opened.runtime.catalog.register(SCOPE, PLAYBOOK)
        yield opened


@pytest.fixture(scope="module")
async def client(stand: Stand) -> AsyncIterator[Client]:
    async with TestClient(TestServer(make_app(stand.runtime))) as opened:
        yield opened
