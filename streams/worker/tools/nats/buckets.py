"""Adapter of the key-value port to buckets of a NATS server."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Sequence

import orjson
from nats.js import JetStreamContext
from nats.js.api import Header, RawStreamMsg
from nats.js.errors import NoKeysError, NotFoundError
from nats.js.kv import KV_DEL, KV_MARKER_REASON, KV_OP, KV_PURGE, MSG_ROLLUP_SUBJECT

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.tools import exact_json
from streams.worker.tools.kv.port import KvBucket, KvEntry

_BUCKET = re.compile(r"[a-zA-Z0-9_-]+")
_KEY = re.compile(r"(?!\.)[-/_=.a-zA-Z0-9]+(?<!\.)")
_NO_MESSAGE = 10037


class NatsKv:
    """Values by bucket and key; a bucket belongs to the account that logs in.

    Text is stored as it is, all else as JSON, and what parses as JSON is returned parsed: other
    clients of the bucket read and write it so. A revision is the number of the message.
    """

    def __init__(self, jetstream: JetStreamContext) -> None:
        self._jetstream = jetstream

    async def get(self, bucket: KvBucket, key: str) -> KvEntry | None:
        """Return the value of a key."""
        subject = _subject(bucket, key)
        try:
            # From the stream's leader: a replica may not have the last write yet.
            found = await self._jetstream.get_last_msg(f"KV_{bucket.name}", subject)
        except NotFoundError as error:
            if error.err_code == _NO_MESSAGE:
                return None
            raise
        return None if _is_marker(found) else KvEntry(parsed(found.data or b""), found.seq or 0)

    async def put(
        self, bucket: KvBucket, key: str, value: Json, *, by: str, ttl_s: float | None
    ) -> int:
        """Store a value and return its revision."""
        ttl = None if ttl_s is None else math.ceil(ttl_s)
        done = await self._jetstream.publish(
            _subject(bucket, key), serialized(value), headers={Header.MSG_ID: by}, msg_ttl=ttl
        )
        return done.seq

    async def delete(self, bucket: KvBucket, key: str) -> bool:
        """Delete a key; return whether it existed."""
        if await self.get(bucket, key) is None:
            return False
        await self._jetstream.publish(_subject(bucket, key), headers={KV_OP: KV_DEL})
        return True

    async def purge(self, bucket: KvBucket, key: str) -> None:
        """Delete a key with all its revisions."""
        headers = {KV_OP: KV_PURGE, Header.ROLLUP: MSG_ROLLUP_SUBJECT}
        await self._jetstream.publish(_subject(bucket, key), headers=headers)

    async def keys(self, bucket: KvBucket) -> Sequence[str]:
        """Return the keys of a bucket in order."""
        store = await self._jetstream.key_value(_bucket(bucket))
        try:
            return sorted(await store.keys())
        except NoKeysError:
            return []


def serialized(value: Json) -> bytes:
    """Return a value as other clients of the server expect it."""
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def parsed(data: bytes) -> Json:
    """Return JSON parsed, text as it is, and other bytes as {encoding: base64, data}."""
    try:
        return exact_json.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": b64encode(data).decode()}


def _bucket(bucket: KvBucket) -> str:
    if not _BUCKET.fullmatch(bucket.name):
        raise BadConfig(f"'bucket' is {bucket.name!r}; NATS takes letters, digits, `_` and `-`")
    return bucket.name


def _subject(bucket: KvBucket, key: str) -> str:
    if not _KEY.fullmatch(key):
        raise BadConfig(
            f"'key' is {key!r}; NATS takes letters, digits and `-/_=.`, without a dot at either end"
        )
    return f"$KV.{_bucket(bucket)}.{key}"


def _is_marker(found: RawStreamMsg) -> bool:
    headers = found.headers or {}
    return headers.get(KV_OP) in (KV_DEL, KV_PURGE) or KV_MARKER_REASON in headers
