"""Payload endpoints: an external worker stores its output before it reports the outcome."""

from __future__ import annotations

import re

from aiohttp import web

from streams.api.errors import BadRequest
from streams.api.payload_streaming import Content, received, send
from streams.api.request_numbers import number
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, reference_with_url
from streams.events.locator import Locator
from streams.events.model import PayloadRef

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE_CHARS = 255
OCTETS = "application/octet-stream"


async def store(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Stream the body to the store and return its reference once it is durable."""
    rows = request.query.get("row_count")
    media_type = request.headers.get("Content-Type", OCTETS)
    if len(media_type) > _MEDIA_TYPE_CHARS:
        raise BadRequest((f"Content-Type: has more than {_MEDIA_TYPE_CHARS} characters",))
    ref = await runtime.payloads.store(
        runtime.scope_of(request),
        received(request),
        media_type=media_type,
        row_count=None if rows is None else number(request, "row_count", 0),
        schema_digest=request.query.get("schema_digest"),
    )
    return json_response(reference_with_url(ref), 201)


async def fetch(runtime: ApiRuntime, request: web.Request) -> web.StreamResponse:
    """Send a payload or a range of it; its digest is checked before the last bytes are sent."""
    digest = request.match_info["sha256"]
    if not _DIGEST.fullmatch(digest):
        raise BadRequest((f"{digest!r} is not a valid digest; it has 64 hex digits",))
    if "byte_length" not in request.query:
        raise BadRequest(("byte_length: missing; take it from the reference",))
    scope = runtime.scope_of(request)
    ref = PayloadRef(
        uri=str(Locator.payload(scope.tenant_id, scope.organization_id, digest)),
        sha256=digest,
        media_type=OCTETS,
        byte_length=number(request, "byte_length", 0),
    )
    pieces = runtime.payloads.fetch(ref)
    return await send(request, Content(pieces, ref.byte_length, OCTETS, digest))
