"""Bodies of requests and responses, and their size limit."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from pyreqwest.response import Response

from streams.errors import Refused
from streams.events.model import Json
from streams.payload.media import is_json, kind_of, text_of
from streams.payload.port import JSON
from streams.worker.errors import BadConfig
from streams.worker.port import Config
from streams.worker.tools import exact_json


class BodyTooLarge(Refused):
    """A response exceeds the size limit."""


def body_of(config: Config, headers: dict[str, str]) -> bytes | dict[str, str] | None:
    """Return the request's body, and add its content type to `headers`.

    `json` is always JSON; `payload` and `body` are JSON unless they are text; `data` is a form
    unless it is text.

    Raises:
        BadConfig: more than one of them is given.
    """
    given = [n for n in ("json", "data", "body", "payload") if config.get(n) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise BadConfig(f"{' and '.join(map(repr, given))} are given; give one body only")
    value = config[given[0]]
    if isinstance(value, str) and given[0] != "json":
        return value.encode()
    if given[0] == "data" and isinstance(value, Mapping):
        return {name: one if isinstance(one, str) else str(one) for name, one in value.items()}
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = JSON
    return orjson.dumps(value)


async def read_bounded(answer: Response, limit: int) -> bytes:
    """Return the response's body.

    Raises:
        BodyTooLarge: it is larger than `limit` bytes.
    """
    length = answer.get_header("content-length")  # missing if the body is decompressed
    if length is not None and length.isdigit():
        if int(length) > limit:
            raise _too_large(limit)
        return bytes(await answer.bytes())
    parts, size = [], 0
    while part := await answer.body_reader.read_chunk():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the answer has more than {limit} bytes; request less at a time, or store it with "
        "`kind: artifact`, `action: put` and this `url`"
    )


def parsed(content: bytes, content_type: str) -> tuple[Json, dict[str, Json]]:
    """Return the body as JSON if that is its content type, else as text; and notes for `meta`.

    Bytes that are not text are base64, as the notes say.

    Raises:
        ValueError: its content type is JSON, but it is not.
    """
    if not content:
        return None, {}
    if not is_json(content_type):
        return text_of(content, content_type)
    try:
        return exact_json.loads(content), {}
    except orjson.JSONDecodeError as error:
        kind, _ = kind_of(content_type)
        raise ValueError(f"the content type is {kind} but the body is not JSON: {error}") from error
