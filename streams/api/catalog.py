"""The catalog over HTTP: register a playbook, list and show what is registered."""

from __future__ import annotations

from aiohttp import web

from streams.api.bodies import Register, number, read
from streams.api.errors import NotFound
from streams.api.runtime import Runtime
from streams.api.shown import answer, row_json


async def register(runtime: Runtime, request: web.Request) -> web.Response:
    """Register a playbook's text; it can be started at once."""
    sent = await read(request, Register)
    made = await runtime.catalog.register(runtime.scope_of(request), sent.content, sent.path)
    shown = {"catalog_id": str(made.catalog_id), "path": made.path, "version": made.version}
    return answer(shown, 201)


async def list_all(runtime: Runtime, request: web.Request) -> web.Response:
    """List the newest version of every path."""
    rows = await runtime.seen.catalog(runtime.scope_of(request), path=None, version=None)
    return answer({"catalog": [row_json(row) for row in rows]})


async def show(runtime: Runtime, request: web.Request) -> web.Response:
    """Show one version of a path with its content, the newest unless one is named."""
    path = request.match_info["path"]
    named = "version" in request.query
    version = number(request, "version", 0, most=2**31 - 1) if named else None
    rows = await runtime.seen.catalog(runtime.scope_of(request), path=path, version=version)
    if not rows:
        raise NotFound("playbook", path if version is None else f"{path} version {version}")
    versions = [row["version"] for row in rows]
    return answer({**row_json(rows[0]), "versions": versions})
