"""The metrics page of a role that reads no topics, and so has no web server of Faust's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from streams.data_folder import layout_of, write_private
from streams.metrics.exposition import RoleMetrics
from streams.metrics.server import serving_metrics
from streams.roles.start import role_folder
from streams.settings import Settings


@asynccontextmanager
async def serving_role_metrics(
    metrics: RoleMetrics, settings: Settings, data: Path
) -> AsyncIterator[None]:
    """Serve the metrics while the body runs, unless `runtime.web_port` is null.

    `roles/<name>.json` in the data folder has the address.
    """
    runtime = settings.runtime
    if runtime.web_port is None:
        yield
        return
    address = layout_of(data).address(runtime.shard_id)
    async with serving_metrics(metrics, host=runtime.web_host, port=runtime.web_port) as url:
        role_folder(settings, data)  # its parent is that of the address
        write_private(address, orjson.dumps({"url": url, "pid": os.getpid()}))
        try:
            yield
        finally:
            address.unlink(missing_ok=True)
