"""Payloads over HTTP: an outside worker stores its output before it says that it is done."""

from __future__ import annotations

import re

from aiohttp import web

from streams.api.bodies import number
from streams.api.errors import BadRequest
from streams.api.runtime import Runtime
from streams.api.shown import answer, shown_reference
from streams.envelope.locator import Locator
from streams.envelope.model import PayloadRef

_DIGEST = re.compile(r"[0-9a-f]{64}")
OCTETS = "application/octet-stream"


async def store(runtime: Runtime, request: web.Request) -> web.Response:
    """Store the body and return its reference once it is durable."""
    rows = request.query.get("row_count")
    ref = await runtime.payloads.put(
        runtime.scope_of(request),
        await request.read(),
        media_type=request.headers.get("Content-Type", OCTETS),
        row_count=None if rows is None else number(request, "row_count", 0),
        schema_digest=request.query.get("schema_digest"),
    )
    return answer(shown_reference(ref), 201)


async def fetch(runtime: Runtime, request: web.Request) -> web.Response:
    """Return the bytes behind a reference, checked against its digest and length."""
    digest = request.match_info["sha256"]
    if not _DIGEST.fullmatch(digest):
        raise BadRequest((f"{digest!r} is no digest; it has 64 hex digits",))
    if "byte_length" not in request.query:
        raise BadRequest(("byte_length: missing; take it from the reference",))
    scope = runtime.scope_of(request)
    ref = PayloadRef(
        uri=str(Locator.payload(scope.tenant_id, scope.organization_id, digest)),
        sha256=digest,
        media_type=OCTETS,
        byte_length=number(request, "byte_length", 0),
    )
    return web.Response(body=await runtime.payloads.get(ref), content_type=OCTETS)
