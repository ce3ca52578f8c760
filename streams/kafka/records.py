"""Decoding of event topic records."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence

from streams.events.canonical import from_millis
from streams.events.codec import Codec
from streams.events.errors import UndecodableEvent
from streams.events.model import Assigned, Event

Headers = Sequence[tuple[str, bytes | None]]


async def event_of_record(
    value: bytes | None, headers: Headers | None, timestamp_ms: int, codec: Codec
) -> Event:
    """Decode a record's envelope, and its headers with the fields the database assigned.

    Raises:
        UndecodableEvent: the mirror did not write the record.
    """
    if value is None:
        raise UndecodableEvent("the record has no value; the mirror writes no tombstones")
    given = assigned_of(dict(headers or ()), timestamp_ms)
    await codec.learn(value)
    return codec.decode(value, given)


def assigned_of(headers: Mapping[str, bytes | None], timestamp_ms: int) -> Assigned:
    """Return the fields that the database assigned, from a record's headers and timestamp."""
    try:
        return Assigned(
            seq=_number(headers, "seq"),
            position=_number(headers, "position"),
            stream_version=_number(headers, "stream_version"),
            ingest_time=from_millis(timestamp_ms),
            chain=base64.b64decode(headers["chain"] or b"", validate=True).hex(),
        )
    except KeyError as missing:
        raise UndecodableEvent(f"the record has no header {missing}; who wrote it?") from missing
    except (ValueError, binascii.Error) as error:
        raise UndecodableEvent(f"a header of the record is invalid: {error}") from error


def _number(headers: Mapping[str, bytes | None], name: str) -> int:
    return int((headers[name] or b"").decode("ascii"))
