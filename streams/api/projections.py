"""Endpoints of business projections: the list, and rows by key over all executions."""

from __future__ import annotations

import orjson
from aiohttp import web

from streams.api.errors import BadRequest
from streams.api.request_numbers import number
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.events.model import Json
from streams.projector.business.reading import MAX_PAGE
from streams.projector.business.reading_json import listed_json, page_json

_PAGING = ("version", "after", "limit")


async def list_all(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """List the business projections of the caller's scope."""
    found = await runtime.business.projections(runtime.scope_of(request))
    return json_response({"projections": [listed_json(one) for one in found]})


async def show(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Return rows of a projection, merged over all executions, in the order of their keys."""
    version = number(request, "version", 0)
    page = await runtime.business.page(
        runtime.scope_of(request),
        request.match_info["name"],
        version=version or None,
        filters={name: text for name, text in request.query.items() if name not in _PAGING},
        after=_after(request),
        limit=max(1, number(request, "limit", 100, most=MAX_PAGE)),
    )
    return json_response(page_json(page))


def _after(request: web.Request) -> list[Json] | None:
    text = request.query.get("after")
    if text is None:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, list):
        raise BadRequest((f"after: is {text[:40]!r}, not `next` of the previous page, as JSON",))
    return found
