"""`streams metrics` finds the pages of running roles by their address files."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from streams.data_folder import layout_of
from streams.local.role_metrics import MetricsNotServed, MetricsUnreadable, scrape
from streams.metrics.exposition import RoleMetrics
from streams.metrics.server import serving_metrics


def write_address(data: Path, name: str, url: str, pid: int) -> None:
    file = layout_of(data).address(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps({"url": url, "pid": pid}))


async def test_the_pages_of_a_role_are_those_of_its_running_processes(tmp_path: Path) -> None:
    metrics = RoleMetrics("worker", "worker-0")
    async with serving_metrics(metrics, host="127.0.0.1", port=0) as url:
        for name in ("worker-0", "worker-gpu-0", "planner-0"):
            write_address(tmp_path, name, url, os.getpid())
        write_address(tmp_path, "worker-1", url, 2**22 + 1)

        everything = await scrape(tmp_path)
        (of_role,) = await scrape(tmp_path, "worker")
        (of_process,) = await scrape(tmp_path, "worker-gpu-0")

    assert [page.process for page in everything] == ["planner-0", "worker-0", "worker-gpu-0"]
    assert (of_role.process, of_process.process) == ("worker-0", "worker-gpu-0")
    (info,) = [one for one in of_role.values() if one.name == "noetl_role_info"]
    assert (info.labels["shard"], info.value) == ("worker-0", 1)


async def test_a_role_that_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(MetricsNotServed, match="planner serves no metrics"):
        await scrape(tmp_path, "planner")


async def test_a_process_that_does_not_respond_is_named(tmp_path: Path) -> None:
    write_address(tmp_path, "api-0", "http://127.0.0.1:9", os.getpid())

    with pytest.raises(MetricsUnreadable, match="api-0"):
        await scrape(tmp_path)
