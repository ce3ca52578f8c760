"""Payloads on their way through the API: in pieces, in ranges, and right or broken off."""

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
"""What one request may store: it goes through a file of the machine."""
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Content:
    """What is to be sent: its pieces raise at their end where they were not what they should be."""

    pieces: AsyncIterator[bytes]
    byte_length: int
    media_type: str
    tag: str
    """The same tag, the same bytes."""


async def received(request: web.Request, most: int = MAX_PAYLOAD_BYTES) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes.

    Raises:
        HTTPRequestEntityTooLarge: it has more than `most` bytes.
        BadRequest: it ends before its end.
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
    """Send the range that was asked for, or everything.

    The last bytes wait until the content has proved right, and the first until there are more:
    what is short, missing or damaged from its start is a problem. What turns out damaged later
    breaks the connection, so that nobody takes what has come for the whole.
    """
    headers = _headers(content)
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    size = content.byte_length
    first, last, status = 0, size - 1, 200
    if (asked := _asked(request, headers["ETag"])) is not None:
        place = _place(*asked, size)
        if place is None:
            headers["Content-Range"] = f"bytes */{size}"
            return web.Response(status=416, headers=headers)
        (first, last), status = place, 206
        headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    response = web.StreamResponse(status=status, headers=headers)
    parts = _cut(content.pieces, first, last)
    async with _unless_broken(request, response), aclosing(parts):
        held = b""
        async for part in parts:
            if held:
                await _write(request, response, held)
            held = part
        await _write(request, response, held)
        await response.write_eof()
    return response


@asynccontextmanager
async def _unless_broken(request: web.Request, response: web.StreamResponse) -> AsyncIterator[None]:
    """Break the connection where the answer has begun and cannot be ended as promised."""
    try:
        yield
    except ConnectionError:
        return  # the reader has left
    except StreamsError as error:
        if not response.prepared:
            raise
        logger.error("%s %s: broken off: %s", request.method, request.path, error)
        if request.transport is not None:
            request.transport.abort()


async def _write(request: web.Request, response: web.StreamResponse, part: bytes) -> None:
    if not response.prepared:
        await response.prepare(request)
    await response.write(part)


async def _cut(pieces: AsyncIterator[bytes], first: int, last: int) -> AsyncGenerator[bytes, None]:
    """Yield what lies between `first` and `last`; read the rest too, for the digest's sake."""
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
        # A browser must not take somebody's data for a page of ours.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
    }


def _asked(request: web.Request, tag: str) -> tuple[str, str] | None:
    """Return the ends of the range asked for; None where everything is to be sent.

    As the standard has it, ranges in other units, several at once, and those of another
    version of the content are not heeded.
    """
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if found is None or not (found[1] or found[2]):
        return None
    if request.headers.get("If-Range", tag) != tag:
        return None
    return found[1], found[2]


def _place(start: str, end: str, size: int) -> tuple[int, int] | None:
    """Return the first and last byte of a range; None where it is outside."""
    if not start:
        length = min(int(end), size)
        return (size - length, size - 1) if length else None
    first = int(start)
    last = min(int(end), size - 1) if end else size - 1
    return (first, last) if first <= last and first < size else None
