"""Media types: detection of JSON, and conversion of bytes to text."""

from __future__ import annotations

from base64 import b64encode
from email.message import Message
from functools import lru_cache

from streams.events.model import Json
from streams.payload.port import JSON


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON, with any parameters."""
    kind, _ = kind_of(media_type)
    return kind == JSON or kind.endswith("+json")


def text_of(data: bytes, media_type: str) -> tuple[str, dict[str, Json]]:
    """Return bytes as text, or as base64 with a note for `meta`."""
    try:
        return data.decode(kind_of(media_type)[1]), {}
    except (ValueError, LookupError):  # not text, or an unknown charset
        return b64encode(data).decode(), {"encoding": "base64"}


@lru_cache(maxsize=256)
def kind_of(media_type: str) -> tuple[str, str]:
    """Return the type in lower case, without parameters, and its charset."""
    message = Message()
    message["Content-Type"] = media_type or "application/octet-stream"
    return message.get_content_type(), message.get_content_charset("utf-8")
