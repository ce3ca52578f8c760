"""The HTTP server: routes, their OpenAPI description, health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from streams.api.problems import report_problems
from streams.api.routes import ROUTES
from streams.api.runtime import RUNTIME, ApiRuntime, Handler
from streams.api.serializers import json_response
from streams.events.model import Root

MAX_BODY_BYTES = 32 * 1024 * 1024
"""Of bodies that are read as a whole; payloads are not."""


def make_app(runtime: ApiRuntime) -> web.Application:
    """Return the application that answers for `runtime`."""
    app = web.Application(middlewares=[report_problems], client_max_size=MAX_BODY_BYTES)
    app[RUNTIME] = runtime
    for route in ROUTES:
        app.router.add_route(route.method, route.path, _bound(route.handle))
    app.router.add_get("/openapi.json", _described)
    app.router.add_get("/healthz", _is_well)
    return app


def _bound(handle: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answered(request: web.Request) -> web.StreamResponse:
        return await handle(request.app[RUNTIME], request)

    return answered


async def _described(request: web.Request) -> web.Response:
    from streams.api.openapi import describe  # nine megabytes, for whoever asks

    try:
        number = version("noetl-streams")
    except PackageNotFoundError:
        number = "0"
    return json_response(describe(ROUTES, version=number))


async def _is_well(request: web.Request) -> web.Response:
    """Answer 200 when the database answers; a problem with 503 otherwise."""
    await request.app[RUNTIME].seen.head(Root("execution", 1))
    return json_response({"status": "ok"})


@asynccontextmanager
async def serving(
    runtime: ApiRuntime, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Serve for as long as the body runs; yield the address. Port 0 takes a free one."""
    runner = web.AppRunner(make_app(runtime), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        taken = runner.addresses[0][1]
        yield f"http://{host}:{taken}"
    finally:
        await runner.cleanup()
