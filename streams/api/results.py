"""Result endpoints: resolve a result's name, and list results of an execution."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from tempfile import SpooledTemporaryFile

from aiohttp import web

from streams.api.errors import BadRequest
from streams.api.payload_streaming import Content, send
from streams.api.request_numbers import id_of
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.events.model import PayloadRef
from streams.payload.port import ARROW, JSON
from streams.results.lookup import Results
from streams.results.reading import MANIFEST, RowCheck
from streams.results.rendering import as_json

FORMS = ("data", "ref")
_IN_MEMORY_BYTES, _PIECE_BYTES = 1 << 20, 1 << 18


async def resolve(runtime: ApiRuntime, request: web.Request) -> web.StreamResponse:
    """Return the data of a result; of a loop, its rows.

    Arrow rows are sent unchanged unless JSON is requested; a loop's rows are joined into one
    Arrow stream if that is requested.
    """
    uri, form = request.query.get("ref"), request.query.get("form", "data")
    if not uri:
        raise BadRequest(("ref: missing; it is `_ref` of a result, as in noetl://execution/…",))
    if form not in FORMS:
        raise BadRequest((f"form: {form!r} is not one of {', '.join(FORMS)}",))
    owner = runtime.scope_of(request)
    results = Results(runtime.log, runtime.clock)
    found = await results.find(uri, owner)
    if form == "ref":
        return json_response(found.ref.to_json())
    payload = found.payload
    if payload.media_type == MANIFEST and ARROW in request.headers.get("Accept", ""):
        return await send(request, await _joined(runtime, payload, results.ends(owner)))
    if payload.media_type == MANIFEST or (payload.media_type == ARROW and _wants_json(request)):
        with SpooledTemporaryFile(_IN_MEMORY_BYTES, prefix="streams-rows-") as spool:
            rows = as_json(runtime.payloads, payload, results.ends(owner))
            length = await _spooled(rows, spool)
            content = Content(_read(spool), length, JSON, f"{payload.sha256}-json")
            return await send(request, content)
    pieces = runtime.payloads.fetch(payload)
    content = Content(pieces, payload.byte_length, payload.media_type, payload.sha256)
    return await send(request, content)


async def of_execution(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """List the references of an execution's results that have not expired."""
    execution_id = id_of(request)
    await runtime.head(request, execution_id)
    found = await Results(runtime.log, runtime.clock).of_execution(
        execution_id,
        runtime.scope_of(request),
        step=request.query.get("step"),
        task=request.query.get("task"),
    )
    return json_response({"results": [one.to_json() for one in found]})


def _wants_json(request: web.Request) -> bool:
    return JSON in request.headers.get("Accept", "")


async def _joined(runtime: ApiRuntime, payload: PayloadRef, check: RowCheck) -> Content:
    from streams.results.stage_rows import read_stage, written  # Arrow: 25 MB, rarely needed

    data = written(await read_stage(runtime.payloads, payload, check=check))
    return Content(_once(data), len(data), ARROW, f"{payload.sha256}-arrow")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _spooled(pieces: AsyncIterator[bytes], spool: SpooledTemporaryFile[bytes]) -> int:
    """Write generated data to a file and return its length, for Content-Length."""
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length < _IN_MEMORY_BYTES:
            spool.write(piece)
        else:
            await asyncio.to_thread(spool.write, piece)
    spool.seek(0)
    return length


async def _read(spool: SpooledTemporaryFile[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(spool.read, _PIECE_BYTES):
        yield piece
