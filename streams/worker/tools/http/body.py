"""Bodies of requests and answers: what is sent, what is read, and how much at most."""

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
    """An answer beyond the size this deployment reads."""


def body_of(config: Config, headers: dict[str, str]) -> bytes | dict[str, str] | None:
    """Return what the request carries, and add the content type it needs to `headers`.

    `json` is always JSON; `payload` and `body` are JSON unless they are text; `data` is a form
    unless it is text.

    Raises:
        BadConfig: more than one of them is there.
    """
    given = [n for n in ("json", "data", "body", "payload") if config.get(n) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise BadConfig(f"{' and '.join(map(repr, given))} are all there; give one body")
    value = config[given[0]]
    if isinstance(value, str) and given[0] != "json":
        return value.encode()
    if given[0] == "data" and isinstance(value, Mapping):
        return {name: one if isinstance(one, str) else str(one) for name, one in value.items()}
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = JSON
    return orjson.dumps(value)


async def read_bounded(answer: Response, limit: int) -> bytes:
    """Return the answer's body.

    Raises:
        BodyTooLarge: it is larger than `limit` bytes.
    """
    length = answer.get_header("content-length")  # not there where the body is decompressed
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
        f"the answer has more than {limit} bytes; ask for less at a time, or store it with "
        "`kind: artifact`, `action: put` and this `url`"
    )


def parsed(content: bytes, content_type: str) -> tuple[Json, dict[str, Json]]:
    """Return the body as JSON if the answer says so, else as text; and notes for `meta`.

    Bytes that are not text come as base64, and the notes say so.

    Raises:
        ValueError: it says JSON and is not.
    """
    if not content:
        return None, {}
    if not is_json(content_type):
        return text_of(content, content_type)
    try:
        return exact_json.loads(content), {}
    except orjson.JSONDecodeError as error:
        kind, _ = kind_of(content_type)
        raise ValueError(f"the answer says {kind} but is not JSON: {error}") from error
