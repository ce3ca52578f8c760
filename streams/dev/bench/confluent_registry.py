"""A schema registry with Confluent's interface for benches: two routes, schemas in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

FIRST_ID = 4711


@asynccontextmanager
async def serving_registry() -> AsyncIterator[str]:
    """Serve a registry; yields its address."""
    schemas: list[str] = []

    async def register(request: web.Request) -> web.Response:
        schema = (await request.json())["schema"]
        if schema not in schemas:
            schemas.append(schema)
        return web.json_response({"id": FIRST_ID + schemas.index(schema)})

    async def find(request: web.Request) -> web.Response:
        place = int(request.match_info["id"]) - FIRST_ID
        if not 0 <= place < len(schemas):
            raise web.HTTPNotFound
        return web.json_response({"schema": schemas[place]})

    app = web.Application()
    app.router.add_post("/subjects/{subject}/versions", register)
    app.router.add_get("/schemas/ids/{id}", find)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
