"""Media types: which bytes are JSON, and how the others are written as text."""

from __future__ import annotations

from base64 import b64encode
from email.message import Message
from functools import lru_cache

from streams.events.model import Json
from streams.payload.port import JSON


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON, whatever its parameters are."""
    kind, _ = kind_of(media_type)
    return kind == JSON or kind.endswith("+json")


def text_of(data: bytes, media_type: str) -> tuple[str, dict[str, Json]]:
    """Return bytes as text, and notes for `meta`: base64 where they are none, and it says so."""
    try:
        return data.decode(kind_of(media_type)[1]), {}
    except (ValueError, LookupError):  # no such text, or no such charset
        return b64encode(data).decode(), {"encoding": "base64"}


@lru_cache(maxsize=256)
def kind_of(media_type: str) -> tuple[str, str]:
    """Return the kind in lower case, without parameters, and the charset it names."""
    message = Message()
    message["Content-Type"] = media_type or "application/octet-stream"
    return message.get_content_type(), message.get_content_charset("utf-8")
