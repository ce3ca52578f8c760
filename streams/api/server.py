"""The HTTP server: routes, their OpenAPI description, health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from streams.api.measured import RequestCounts
from streams.api.problems import report_problems
from streams.api.routes import ROUTES
from streams.api.runtime import RUNTIME, ApiRuntime, Handler
from streams.api.serializers import json_response
from streams.events.model import Root
from streams.metrics.exposition import PATH, RoleMetrics
from streams.metrics.server import metrics_handler

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Limit of bodies that are read whole; payloads are streamed."""


def make_app(runtime: ApiRuntime, metrics: RoleMetrics | None = None) -> web.Application:
    """Return the application that serves `runtime`, and the metrics of the process."""
    counts = RequestCounts()
    middlewares = [counts.middleware, report_problems]
    app = web.Application(middlewares=middlewares, client_max_size=MAX_BODY_BYTES)
    if metrics is not None:
        metrics.add(counts.samples)
        app.router.add_get(PATH, metrics_handler(metrics))
    app[RUNTIME] = runtime
    for route in ROUTES:
        app.router.add_route(route.method, route.path, _bound(route.handle))
    app.router.add_get("/openapi.json", _openapi)
    app.router.add_get("/healthz", _health)
    return app


def _bound(handle: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        return await handle(request.app[RUNTIME], request)

    return handler


async def _openapi(request: web.Request) -> web.Response:
    from streams.api.openapi import describe  # 9 MB, rarely needed

    try:
        number = version("noetl-streams")
    except PackageNotFoundError:
        number = "0"
    return json_response(describe(ROUTES, version=number))


async def _health(request: web.Request) -> web.Response:
    """Return 200 when the database responds; a problem with 503 otherwise."""
    await request.app[RUNTIME].projections.head(Root("execution", 1))
    return json_response({"status": "ok"})


@asynccontextmanager
async def serving(
    runtime: ApiRuntime,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    metrics: RoleMetrics | None = None,
) -> AsyncIterator[str]:
    """Serve while the body runs; yield the address. Port 0 picks a free one."""
    runner = web.AppRunner(make_app(runtime, metrics), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound_port = runner.addresses[0][1]
        yield f"http://{host}:{bound_port}"
    finally:
        await runner.cleanup()
