"""Streaming of payloads over HTTP, in pieces and byte ranges."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientPayloadError, web

from streams.api.errors import BadRequest
from streams.errors import StreamsError

MAX_PAYLOAD_BYTES = 16 << 30
"""Limit of one upload: it is spooled to a local file."""
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes to send; `pieces` raises at its end if they do not match their digest."""

    pieces: AsyncIterator[bytes]
    byte_length: int
    media_type: str
    tag: str
    """Identifies the bytes, for ETag."""


async def received(request: web.Request, most: int = MAX_PAYLOAD_BYTES) -> AsyncIterator[bytes]:
    """Yield the body of a request as it arrives.

    Raises:
        HTTPRequestEntityTooLarge: it has more than `most` bytes.
        BadRequest: the connection ended early.
    """
    length = request.content_length or 0
    try:
        if length > most:
            raise web.HTTPRequestEntityTooLarge(most, length)
        length = 0
        async for piece in request.content.iter_any():
            length += len(piece)
            if length > most:
                raise web.HTTPRequestEntityTooLarge(most, length)
            yield piece
    except (ClientPayloadError, ConnectionError) as error:
        why = f"the body ended after {length} bytes: {error}"
        raise BadRequest((f"{why}; nothing was stored, send it again",)) from error


async def send(request: web.Request, content: Content) -> web.StreamResponse:
    """Send the requested range, or everything.

    One piece is held back until the next is read or the digest is verified, so that missing
    or damaged content is a problem response. Damage found after the first bytes were sent
    aborts the connection.
    """
    headers = _headers(content)
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    size = content.byte_length
    first, last, status = 0, size - 1, 200
    if (requested := _requested_range(request, headers["ETag"])) is not None:
        bounds = _bounds(*requested, size)
        if bounds is None:
            headers["Content-Range"] = f"bytes */{size}"
            return web.Response(status=416, headers=headers)
        (first, last), status = bounds, 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    response = web.StreamResponse(status=status, headers=headers)
    parts = _slice(content.pieces, first, last)
    async with _abort_on_error(request, response), aclosing(parts):
        held = b""
        async for part in parts:
            if held:
                await _write(request, response, held)
            held = part
        await _write(request, response, held)
        await response.write_eof()
    return response


@asynccontextmanager
async def _abort_on_error(
    request: web.Request, response: web.StreamResponse
) -> AsyncIterator[None]:
    """Abort the connection if a response that has begun cannot be completed."""
    try:
        yield
    except ConnectionError:
        return  # the client disconnected
    except StreamsError as error:
        if not response.prepared:
            raise
        logger.error("%s %s: aborted: %s", request.method, request.path, error)
        if request.transport is not None:
            request.transport.abort()


async def _write(request: web.Request, response: web.StreamResponse, part: bytes) -> None:
    if not response.prepared:
        await response.prepare(request)
    await response.write(part)


async def _slice(
    pieces: AsyncIterator[bytes], first: int, last: int
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes from `first` to `last`; read the rest too, to verify the digest."""
    at = 0
    try:
        async for piece in pieces:
            if part := piece[max(0, first - at) : max(0, last + 1 - at)]:
                yield part
            at += len(piece)
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()


def _headers(content: Content) -> dict[str, str]:
    return {
        "Content-Type": content.media_type,
        "Accept-Ranges": "bytes",
        "Vary": "Accept",
        "ETag": f'"{content.tag}"',
        # A browser must not render stored data as a page.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }


def _requested_range(request: web.Request, tag: str) -> tuple[str, str] | None:
    """Return the ends of the requested range; None for everything.

    As RFC 9110 allows, ranges in other units, multiple ranges, and those of another version
    of the content are ignored.
    """
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None or not (found[1] or found[2]):
        return None
    if request.headers.get("If-Range", tag) != tag:
        return None
    return found[1], found[2]


def _bounds(start: str, end: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte of a range; None if it is outside the content."""
    if not start:
        length = min(int(end), size)
        return (size - length, size - 1) if length else None
    first = int(start)
    last = min(int(end), size - 1) if end else size - 1
    return (first, last) if first <= last and first < size else None
