"""Results over HTTP: the bytes behind a name, whole or in part."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import orjson
from aiohttp import web

from streams.api.bodies import id_of
from streams.api.errors import BadRequest
from streams.api.runtime import Runtime
from streams.api.shown import answer
from streams.envelope.model import PayloadRef
from streams.execution.lookup import Results
from streams.payload.port import ARROW, JSON
from streams.payload.reading import MANIFEST, read_value

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
FORMS = ("data", "ref")


async def resolve(runtime: Runtime, request: web.Request) -> web.StreamResponse:
    """Return the data behind a result's name; of a loop, its rows.

    Rows in Arrow are sent as they are unless JSON is asked for.
    """
    uri, form = request.query.get("ref"), request.query.get("form", "data")
    if not uri:
        raise BadRequest(("ref: missing; it is `_ref` of a result, as in noetl://execution/…",))
    if form not in FORMS:
        raise BadRequest((f"form: {form!r} is none of {', '.join(FORMS)}",))
    owner = runtime.scope_of(request)
    found = await Results(runtime.log, runtime.clock).find(uri, owner)
    if form == "ref":
        return answer(found.ref)
    payload = found.payload
    if payload.media_type == MANIFEST or (payload.media_type == ARROW and _wants_json(request)):
        data = orjson.dumps(await read_value(runtime.payloads, payload))
        return await _sent(request, _once(data), len(data), JSON, payload)
    pieces = runtime.payloads.fetch(payload)
    return await _sent(request, pieces, payload.byte_length, payload.media_type, payload)


async def of_execution(runtime: Runtime, request: web.Request) -> web.Response:
    """List the references of an execution's results that have not ended."""
    execution_id = id_of(request)
    await runtime.head(request, execution_id)
    found = await Results(runtime.log, runtime.clock).of_execution(
        execution_id,
        runtime.scope_of(request),
        step=request.query.get("step"),
        task=request.query.get("task"),
    )
    return answer({"results": found})


def _wants_json(request: web.Request) -> bool:
    return JSON in request.headers.get("Accept", "")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _sent(
    request: web.Request,
    pieces: AsyncIterator[bytes],
    size: int,
    media_type: str,
    payload: PayloadRef,
) -> web.StreamResponse:
    """Send the range that was asked for, or everything, piece by piece.

    The first piece comes before the answer begins, so that what is not there is a problem
    and no broken answer.
    """
    headers = {"Content-Type": media_type, "Accept-Ranges": "bytes", "ETag": _tag(payload)}
    first, last, status = 0, size - 1, 200
    if (asked := request.headers.get("Range")) is not None:
        place = _place(asked, size)
        if place is None:
            headers["Content-Range"] = f"bytes */{size}"
            return web.Response(status=416, headers=headers)
        (first, last), status = place, 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    response, at = web.StreamResponse(status=status, headers=headers), 0
    async for piece in pieces:
        if not response.prepared:
            await response.prepare(request)
        part = piece[max(0, first - at) : max(0, last + 1 - at)]
        at += len(piece)
        if part:
            await response.write(part)
    if not response.prepared:
        await response.prepare(request)
    await response.write_eof()
    return response


def _place(asked: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte of a range; None where it is outside, or is none."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        length = min(int(found[2]), size)
        return (size - length, size - 1) if length else None
    first = int(found[1])
    last = min(int(found[2]), size - 1) if found[2] else size - 1
    return (first, last) if first <= last and first < size else None


def _tag(payload: PayloadRef) -> str:
    return f'"{payload.sha256}"'
