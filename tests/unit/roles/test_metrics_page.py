"""A role without Faust's web server serves its metrics on one of its own."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import orjson

from streams.data_folder import layout_of
from streams.metrics.exposition import PATH, RoleMetrics
from streams.roles.metrics_page import serving_role_metrics
from streams.settings import Settings, load


def settings_with(port: int | None) -> Settings:
    settings = load(env={"NOETL_SHARD_ID": "collector-0"}).settings
    runtime = settings.runtime.model_copy(update={"web_port": port})
    return settings.model_copy(update={"runtime": runtime})


async def test_the_page_is_at_the_address_in_the_role_s_file_while_it_runs(tmp_path: Path) -> None:
    address = layout_of(tmp_path).address("collector-0")
    metrics = RoleMetrics("collector", "collector-0")

    async with serving_role_metrics(metrics, settings_with(0), tmp_path):
        url = orjson.loads(address.read_bytes())["url"]
        async with aiohttp.ClientSession() as session, session.get(f"{url}{PATH}") as response:
            assert response.content_type == "text/plain"
            assert 'noetl_role_info{role="collector"' in await response.text()

    assert not address.exists()


async def test_without_a_port_nothing_listens(tmp_path: Path) -> None:
    metrics = RoleMetrics("collector", "collector-0")
    async with serving_role_metrics(metrics, settings_with(None), tmp_path):
        assert not layout_of(tmp_path).address("collector-0").exists()
