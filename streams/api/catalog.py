"""Catalog endpoints: register, list and show playbooks and subscriptions."""

from __future__ import annotations

from dataclasses import asdict

from aiohttp import web

from streams.api.request_bodies import Register, read
from streams.api.request_numbers import number
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, row_json


async def register(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Register a playbook or subscription; it acts immediately."""
    sent = await read(request, Register)
    registered = await runtime.catalog.register(runtime.scope_of(request), sent.content, sent.path)
    return json_response(row_json(asdict(registered)), 201 if registered.is_new else 200)


async def list_all(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """List the newest version of every path."""
    entries = await runtime.catalog.list(runtime.scope_of(request))
    return json_response({"catalog": [row_json(asdict(entry)) for entry in entries]})


async def show(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Return one version of a path with its content, by default the newest."""
    path = request.match_info["path"]
    has_version = "version" in request.query
    version = number(request, "version", 0, most=2**31 - 1) if has_version else None
    entry = await runtime.catalog.find(runtime.scope_of(request), path, version, kind=None)
    content = await runtime.catalog.content(entry.catalog_id, entry.version)
    return json_response({**row_json(asdict(entry)), "content": content})
