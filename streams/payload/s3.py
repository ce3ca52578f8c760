"""Payloads in S3, or in anything that speaks it (SeaweedFS, MinIO, rclone).

boto3 finds the keys; small objects go over aiohttp, because a boto3 call costs 2 ms of
processor time and a thread, and a busy worker stores hundreds of payloads a second. Large
ones, lists and moves go through obstore.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import BinaryIO
from urllib.parse import quote, urlsplit

import aiohttp
from yarl import URL

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects import NoSuchObject, ObjectTooLarge, Shelves, Stat
from streams.payload.sigv4 import Keys, sign

PAUSES_S = (0.1, 0.4, 1.0)
_ERROR_BYTES = 65_536
_SMALL_WRITE_BYTES, _SMALL_READ_BYTES = 1 << 20, 16 << 20
_EMPTY = sha256(b"").hexdigest()
_CODE = re.compile(rb"<Code>([^<]{1,80})</Code>")


class S3Objects:
    """Objects of one bucket; `large` goes to the same bucket for whatever is not small."""

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
            return await self._large.read(key, at_most=at_most)
        status, data, length = await self._request("GET", key, at_most=at_most)
        if status == 404:
            raise NoSuchObject(key)
        if length > at_most:
            raise ObjectTooLarge(f"{length} bytes, {at_most} are allowed")
        return data

    def stream(self, key: str) -> AsyncGenerator[bytes, None]:
        """Yield the object in pieces."""
        return self._large.stream(key)

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
        await self._large.move(source, target)

    async def _request(
        self,
        method: str,
        key: str,
        data: bytes = b"",
        digest: str = _EMPTY,
        at_most: int = _ERROR_BYTES,
    ) -> tuple[int, bytes, int]:
        """Send one request, again while the store is busy; return status, body and length.

        Only success and 404 come back; anything else is PayloadUnavailable.
        """
        why = ""
        for pause in (*self._pauses_s, None):
            try:
                status, body, length = await self._send(method, key, data, digest, at_most)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = str(error) or type(error).__name__
            else:
                found = _CODE.search(body)
                gone = status == 404 and method != "PUT"
                if status < 300 or (gone and not (found and found[1] == b"NoSuchBucket")):
                    return status, body, length
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
        self, method: str, key: str, data: bytes, digest: str, at_most: int
    ) -> tuple[int, bytes, int]:
        path = f"{self._prefix}/{quote(key)}"
        headers = sign(
            method,
            self._host,
            path,
            content_sha256=digest,
            region=self._region,
            keys=await self._keys(),
            now=self._now(),
            headers=self._put_headers if method == "PUT" else None,
        )
        async with self._session.request(
            method,
            URL(self._origin + path, encoded=True),
            data=data if method == "PUT" else None,
            headers=headers,
            skip_auto_headers=("Content-Type", "Accept-Encoding"),
        ) as answer:
            length = answer.content_length or 0
            if answer.status == 200 and length > at_most:
                answer.close()
                return answer.status, b"", length
            body = await _read(answer.content, at_most if answer.status == 200 else _ERROR_BYTES)
            return answer.status, body, max(length, len(body))


async def _read(content: aiohttp.StreamReader, at_most: int) -> bytes:
    """Read a body whose length the server may not have told; stop one byte past `at_most`."""
    pieces, length = [], 0
    async for piece in content.iter_any():
        pieces.append(piece)
        length += len(piece)
        if length > at_most:
            break
    return b"".join(pieces)
