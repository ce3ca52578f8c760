"""The high watermark of a pool counts the connections in use and the callers that wait."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streams.app import open_pool
from streams.metrics.exposition import RoleMetrics
from streams.metrics.roles import API
from streams.settings import Settings
from tests.support.log.databases import dsn

pytestmark = pytest.mark.stack


async def test_callers_that_wait_for_a_connection_count(database: Settings) -> None:
    metrics = RoleMetrics(API, "api-0")

    async def depth() -> float:
        text = (await metrics.page()).decode()
        (found,) = [
            one
            for family in text_string_to_metric_families(text)
            for one in family.samples
            if one.name == "pg_pool_depth_highwatermark"
        ]
        assert found.labels == {"pool": "seen"}
        return float(found.value)

    async with open_pool(dsn(database), name="seen", metrics=metrics) as pool:
        await pool.fetchval("SELECT 1")
        assert await depth() <= 1
        # Two connections, so three of them wait.
        await asyncio.gather(*(pool.fetchval("SELECT pg_sleep(0.1)") for _ in range(5)))
        assert await depth() >= 4
        assert await pool.fetchval("SELECT 2") == 2
