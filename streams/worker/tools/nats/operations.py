"""Operations of `kind: nats` that only a NATS server has: messages, streams and objects."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Mapping

from nats.js import JetStreamContext
from nats.js.api import Header, ObjectInfo
from nats.js.errors import NotFoundError

from streams.events.model import Json
from streams.worker.errors import BadConfig
from streams.worker.port import Config
from streams.worker.tools.kv.port import KvBucket
from streams.worker.tools.nats.buckets import NatsKv, parsed, serialized
from streams.worker.tools.task_config import flag, mapping, text, whole

OBJECT_BYTES = 64 << 20
Answer = dict[str, Json]
Operation = Callable[[JetStreamContext, Config, str], Awaitable[Answer]]


async def _kv_purge(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    bucket, key = text(config, "bucket"), text(config, "key")
    await NatsKv(jetstream).purge(KvBucket("", "", bucket), key)
    return {"bucket": bucket, "key": key}


async def _js_publish(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    """Publish once for each call within the stream's window for duplicates."""
    subject = text(config, "subject")
    headers = {str(name): str(value) for name, value in mapping(config, "headers").items()}
    stream = None if config.get("stream") is None else text(config, "stream")
    content = serialized(config.get("data"))
    done = await jetstream.publish(
        subject, content, stream=stream, headers={Header.MSG_ID: by, **headers}
    )
    return {
        "subject": subject,
        "stream": done.stream,
        "seq": done.seq,
        "duplicate": bool(done.duplicate),
    }


async def _js_get_msg(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    stream, seq = text(config, "stream"), whole(config, "seq")
    if seq is not None:
        found = await jetstream.get_msg(stream, seq=seq)
    elif config.get("subject") is not None:
        found = await jetstream.get_last_msg(stream, text(config, "subject"))
    elif flag(config, "last", default=False):
        found = await jetstream.get_last_msg(stream, ">")
    else:
        raise BadConfig("js_get_msg needs `seq`, `subject` or `last: true`")
    headers: dict[str, Json] = {**(found.headers or {})}
    return {
        "stream": stream,
        "subject": found.subject,
        "seq": found.seq,
        "data": parsed(found.data or b""),
        "headers": headers,
    }


async def _js_stream_info(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    stream = text(config, "stream")
    found = await jetstream.stream_info(stream)
    subjects: list[Json] = [*(found.config.subjects or [])]
    state = found.state
    return {
        "stream": stream,
        "config": {"name": found.config.name, "subjects": subjects},
        "state": {
            "messages": state.messages,
            "bytes": state.bytes,
            "first_seq": state.first_seq,
            "last_seq": state.last_seq,
            "consumer_count": state.consumer_count,
        },
    }


async def _object_put(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    name, content = text(config, "name"), config.get("data")
    if _is_base64(config):
        try:
            data = b64decode(str(content), validate=True)
        except NotBase64 as error:
            raise BadConfig(f"'data' is not base64: {error}") from error
    else:
        data = serialized(content)
    store = await jetstream.object_store(text(config, "bucket"))
    done = await store.put(name, data)
    return {**_named(config), "size": done.size, "digest": done.digest}


async def _object_get(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    store = await jetstream.object_store(text(config, "bucket"))
    name = text(config, "name")
    size = (await store.get_info(name)).size or 0
    if size > OBJECT_BYTES:
        raise BadConfig(f"object {name!r} has {size} bytes, more than {OBJECT_BYTES}")
    data = (await store.get(name)).data or b""
    if _is_base64(config):
        return {**_named(config), "data": b64encode(data).decode(), "size": len(data)}
    try:
        return {**_named(config), "data": data.decode(), "size": len(data)}
    except UnicodeDecodeError as error:
        raise BadConfig(f"object {name!r} is not UTF-8; read it with encoding: base64") from error


async def _object_delete(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    store = await jetstream.object_store(text(config, "bucket"))
    try:
        await store.delete(text(config, "name"))
    except NotFoundError:
        return {**_named(config), "deleted": False}
    return {**_named(config), "deleted": True}


async def _object_list(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    store = await jetstream.object_store(text(config, "bucket"))
    try:
        found = await store.list(ignore_deletes=True)
    except NotFoundError:
        found = []
    objects: list[Json] = [_described(one) for one in found]
    return {"bucket": text(config, "bucket"), "objects": objects, "count": len(objects)}


async def _object_info(jetstream: JetStreamContext, config: Config, by: str) -> Answer:
    store = await jetstream.object_store(text(config, "bucket"))
    return {**_named(config), **_described(await store.get_info(text(config, "name")))}


def _named(config: Config) -> Answer:
    return {"bucket": text(config, "bucket"), "name": text(config, "name")}


def _described(info: ObjectInfo) -> Answer:
    changed = {} if info.mtime is None else {"mtime": str(info.mtime)}
    return {"name": info.name, "size": info.size, "digest": info.digest, **changed}


def _is_base64(config: Config) -> bool:
    encoding = str(config.get("encoding") or "utf-8").lower()
    if encoding not in ("utf-8", "base64"):
        raise BadConfig(f"'encoding' is {encoding!r}, not utf-8 or base64")
    return encoding == "base64"


OPERATIONS: Mapping[str, Operation] = {
    "kv_purge": _kv_purge,
    "js_publish": _js_publish,
    "js_get_msg": _js_get_msg,
    "js_stream_info": _js_stream_info,
    "object_put": _object_put,
    "object_get": _object_get,
    "object_delete": _object_delete,
    "object_list": _object_list,
    "object_info": _object_info,
}
