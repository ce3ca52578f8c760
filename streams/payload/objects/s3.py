"""Payloads in S3, or in anything that speaks it (SeaweedFS, MinIO, rclone).

boto3 finds the keys; small objects go over aiohttp, because a boto3 call costs 2 ms of
processor time and a thread, and a busy worker stores hundreds of payloads a second. They are
read in ranges that way, too: rclone answers a range as if it were all, which obstore refuses.
Large ones are written, and lists made, through obstore.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit

import aiohttp
from yarl import URL

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.port import NoSuchObject, ObjectTooLarge, Shelves, Stat
from streams.payload.objects.ranges import RANGE_BYTES, Range, Replaced, carry, pieces, ranges
from streams.payload.objects.sigv4 import Keys, sign

PAUSES_S = (0.1, 0.4, 1.0)
_ERROR_BYTES = 65_536
_SMALL_WRITE_BYTES, _SMALL_READ_BYTES = 1 << 20, 16 << 20
_EMPTY = sha256(b"").hexdigest()
_CODE = re.compile(rb"<Code>([^<]{1,80})</Code>")
_WHOLE = re.compile(r"bytes \d+-\d+/(\d+)")


class _Answer(NamedTuple):
    """What the server said; `length` is that of its body, also where that was not read."""

    status: int
    body: bytes
    length: int
    headers: Mapping[str, str]


class S3Objects:
    """Objects of one bucket; `large` writes to the same bucket what is not small."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        base_url: str,
        region: str,
        keys: Callable[[], Awaitable[Keys]],
        now: Callable[[], datetime],
        large: Shelves,
        encrypt: bool = False,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        """`base_url` is the bucket's own address; `keys` is asked before every request."""
        split = urlsplit(base_url)
        self._session, self._region, self._keys, self._now = session, region, keys, now
        self._origin, self._prefix = f"{split.scheme}://{split.netloc}", split.path.rstrip("/")
        self._host, self._pauses_s, self._large = split.netloc, pauses_s, large
        self._put_headers = {"x-amz-server-side-encryption": "AES256"} if encrypt else {}

    async def write(self, key: str, data: bytes) -> None:
        """Keep `data`."""
        if len(data) > _SMALL_WRITE_BYTES:
            await self._large.write(key, data)
        else:
            await self._request("PUT", key, data, sha256(data).hexdigest())

    async def upload(self, key: str, source: BinaryIO) -> None:
        """Keep what `source` holds, in parts."""
        await self._large.upload(key, source)

    async def read(self, key: str, *, at_most: int) -> bytes:
        """Return the object."""
        if at_most > _SMALL_READ_BYTES:
            ask = partial(self._range, key, at_most=at_most)
            return b"".join([part async for part in ranges(key, ask)])
        found = await self._request("GET", key, at_most=at_most)
        if found.status == 404:
            raise NoSuchObject(key)
        if found.length > at_most:
            raise ObjectTooLarge(f"{found.length} bytes, {at_most} are allowed")
        return found.body

    async def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces."""
        async for piece in pieces(key, partial(self._range, key)):
            yield piece

    async def stat(self, key: str) -> Stat | None:
        """Return the object's length and time."""
        return await self._large.stat(key)

    async def remove(self, key: str) -> None:
        """Remove the object."""
        await self._request("DELETE", key)

    def list(self, prefix: str = "") -> AsyncIterator[Stat]:
        """Yield every object below `prefix`."""
        return self._large.list(prefix)

    async def move(self, source: str, target: str) -> None:
        """Take an object from one key to the other."""
        await carry(self, source, target)

    async def _range(
        self, key: str, start: int, tag: str | None, *, at_most: int | None = None
    ) -> Range:
        headers = {"range": f"bytes={start}-{start + RANGE_BYTES - 1}"}
        if tag is not None:
            headers["if-match"] = tag
        found = await self._request("GET", key, at_most=RANGE_BYTES, headers=headers)
        if found.status == 404:
            raise NoSuchObject(key)
        if found.status in (412, 416) and start:
            raise Replaced
        # rclone says 200 of a range, too; nothing of an empty object can be asked for.
        size = 0 if found.status == 416 else found.length
        told = _WHOLE.fullmatch(found.headers.get("Content-Range", ""))
        if told is not None:
            size = int(told[1])
        elif size > RANGE_BYTES:
            raise PayloadUnavailable(f"{key}: the object store does not answer with ranges")
        if at_most is not None and size > at_most:
            raise ObjectTooLarge(f"{size} bytes, {at_most} are allowed")
        data = found.body if size else b""
        return Range(memoryview(data), size, found.headers.get("ETag"))

    async def _request(
        self,
        method: str,
        key: str,
        data: bytes = b"",
        digest: str = _EMPTY,
        at_most: int = _ERROR_BYTES,
        headers: dict[str, str] | None = None,
    ) -> _Answer:
        """Send one request, again while the store is busy.

        Only success comes back, 404, and what says that there is no such range; anything else
        is PayloadUnavailable.
        """
        why = ""
        for pause in (*self._pauses_s, None):
            try:
                answer = await self._send(method, key, data, digest, at_most, headers or {})
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = str(error) or type(error).__name__
            else:
                status, found = answer.status, _CODE.search(answer.body)
                gone = status == 404 and method != "PUT"
                if status < 300 or (gone and not (found and found[1] == b"NoSuchBucket")):
                    return answer
                if status in (412, 416) and headers:
                    return answer
                why = f"HTTP {status} {found[1].decode() if found else ''}".rstrip()
                if status < 500 and status != 429:
                    break
            if pause is not None:
                await asyncio.sleep(pause)
        raise PayloadUnavailable(
            f"{method} {self._origin}{self._prefix}/{key}: {why}; "
            "check that the object store is up and its bucket and keys are right"
        )

    async def _send(
        self,
        method: str,
        key: str,
        data: bytes,
        digest: str,
        at_most: int,
        headers: dict[str, str],
    ) -> _Answer:
        path = f"{self._prefix}/{quote(key)}"
        signed = sign(
            method,
            self._host,
            path,
            content_sha256=digest,
            region=self._region,
            keys=await self._keys(),
            now=self._now(),
            headers=self._put_headers if method == "PUT" else headers,
        )
        async with self._session.request(
            method,
            URL(self._origin + path, encoded=True),
            data=data if method == "PUT" else None,
            headers=signed,
            skip_auto_headers=("Content-Type", "Accept-Encoding"),
        ) as answer:
            length = answer.content_length or 0
            is_good = answer.status in (200, 206)
            if is_good and length > at_most:
                answer.close()
                return _Answer(answer.status, b"", length, answer.headers)
            body = await _read(answer.content, at_most if is_good else _ERROR_BYTES)
            return _Answer(answer.status, body, max(length, len(body)), answer.headers)


async def _read(content: aiohttp.StreamReader, at_most: int) -> bytes:
    """Read a body whose length the server may not have told; stop one byte past `at_most`."""
    pieces, length = [], 0
    async for piece in content.iter_any():
        pieces.append(piece)
        length += len(piece)
        if length > at_most:
            break
    return b"".join(pieces)
