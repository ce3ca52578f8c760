"""Payloads in S3, or in anything that speaks it (SeaweedFS, MinIO, rclone).

boto3 finds the keys; the requests go over aiohttp, because a boto3 call costs 2 ms of
processor time and a thread, and a busy worker stores hundreds of payloads a second.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from hashlib import sha256
from urllib.parse import quote, urlsplit

import aiohttp
from yarl import URL

from streams.envelope.model import PayloadRef
from streams.payload.content import check, describe, key_of
from streams.payload.errors import PayloadMissing, PayloadUnavailable
from streams.payload.port import Scope
from streams.payload.sigv4 import Keys, sign

PAUSES_S = (0.1, 0.4, 1.0)
_KNOWN = 10_000
_EMPTY = sha256(b"").hexdigest()
_CODE = re.compile(rb"<Code>([^<]{1,80})</Code>")


class S3PayloadStore:
    """Stores each payload once under its digest.

    A put asks first whether the object is there, whole. An overwrite with the same bytes
    would be harmless on S3, but servers that ignore `If-None-Match` and write in place
    (rclone) would for a moment show, and after a crash keep, half of an object that is in use.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        base_url: str,
        region: str,
        keys: Callable[[], Awaitable[Keys]],
        now: Callable[[], datetime],
        encrypt: bool = False,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        """`base_url` is the bucket's own address; `keys` is asked before every request."""
        split = urlsplit(base_url)
        self._session, self._region, self._keys, self._now = session, region, keys, now
        self._origin, self._prefix = f"{split.scheme}://{split.netloc}", split.path.rstrip("/")
        self._host, self._pauses_s = split.netloc, pauses_s
        self._put_headers = {"x-amz-server-side-encryption": "AES256"} if encrypt else {}
        # Objects this process stored or saw lately: a repeated put costs nothing.
        self._known: OrderedDict[str, None] = OrderedDict()

    async def put(
        self,
        scope: Scope,
        data: bytes,
        *,
        media_type: str,
        row_count: int | None = None,
        schema_digest: str | None = None,
    ) -> PayloadRef:
        """Store `data` and return its reference once it is durable."""
        ref = describe(
            scope, data, media_type=media_type, row_count=row_count, schema_digest=schema_digest
        )
        key = key_of(ref)
        if key not in self._known:
            status, _, length = await self._request("HEAD", key)
            if status != 200 or length != len(data):
                await self._request("PUT", key, data, ref.sha256)
            self._remember(key)
        return ref

    async def get(self, ref: PayloadRef) -> bytes:
        """Return the bytes behind `ref`, checked against its digest and length."""
        status, data, _ = await self._request("GET", key_of(ref))
        if status == 404:
            raise PayloadMissing(ref.uri)
        return check(ref, data)

    async def exists(self, ref: PayloadRef) -> bool:
        """Say whether the object is there."""
        status, _, _ = await self._request("HEAD", key_of(ref))
        return status == 200

    async def delete(self, ref: PayloadRef) -> None:
        """Remove the object; harmless when it is gone."""
        key = key_of(ref)
        self._known.pop(key, None)
        await self._request("DELETE", key)

    def _remember(self, key: str) -> None:
        self._known[key] = None
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    async def _request(
        self, method: str, key: str, data: bytes = b"", digest: str = _EMPTY
    ) -> tuple[int, bytes, int]:
        """Send one request, again while the store is busy; return status, body and length.

        Only success and 404 come back; anything else is PayloadUnavailable.
        """
        why = ""
        for pause in (*self._pauses_s, None):
            try:
                status, body, length = await self._send(method, key, data, digest)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = str(error) or type(error).__name__
            else:
                if status < 300 or (status == 404 and method != "PUT"):
                    return status, body, length
                found = _CODE.search(body)
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
        self, method: str, key: str, data: bytes, digest: str
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
            return answer.status, await answer.read(), int(answer.headers.get("Content-Length", 0))
