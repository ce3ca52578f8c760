"""A small web server with the metrics of a process that has none of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from streams.metrics.exposition import CONTENT_TYPE, PATH, RoleMetrics


def metrics_handler(
    metrics: RoleMetrics,
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return the handler of `/metrics`."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=await metrics.page(), headers={"Content-Type": CONTENT_TYPE})

    return show


@asynccontextmanager
async def serving_metrics(metrics: RoleMetrics, *, host: str, port: int) -> AsyncIterator[str]:
    """Serve `/metrics` while the body runs; yield the address. Port 0 picks a free one."""
    app = web.Application()
    app.router.add_get(PATH, metrics_handler(metrics))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound, number = runner.addresses[0][:2]
        yield f"http://[{bound}]:{number}" if ":" in bound else f"http://{bound}:{number}"
    finally:
        await runner.cleanup()
