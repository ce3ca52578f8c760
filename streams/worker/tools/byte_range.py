"""Byte ranges of payloads, read without the whole payload in memory."""

from __future__ import annotations

import re

from streams.events.model import Json, PayloadRef
from streams.payload.port import PayloadStore
from streams.worker.errors import BadConfig, ValueTooLarge

_RANGE = re.compile(r"([0-9]{0,18})-([0-9]{0,18})")


def parse_range(asked: Json, size: int) -> tuple[int, int]:
    """Return the first and last byte of a range such as `0-99`, `100-` or `-7`, inclusive.

    Raises:
        BadConfig: it is not valid, or out of bounds.
    """
    found = _RANGE.fullmatch(asked) if isinstance(asked, str) else None
    if found is None or not (found[1] or found[2]):
        raise BadConfig(f"'range' is {asked!r}; write bytes as '0-99', '100-' or '-7'")
    if found[1]:
        first = int(found[1])
        last = min(int(found[2]), size - 1) if found[2] else size - 1
    else:
        first, last = max(0, size - int(found[2])), size - 1
    if not first <= last:
        raise BadConfig(f"'range' is {asked!r}, and the payload has {size} bytes")
    return first, last


async def read_range(
    payloads: PayloadStore, ref: PayloadRef, first: int, last: int, most: int
) -> bytes:
    """Return a range of a payload. All of it is read, to verify its digest.

    Raises:
        ValueTooLarge: the part has more than `most` bytes.
        PayloadMissing, PayloadCorrupt, PayloadUnavailable: it cannot be read.
    """
    if last - first >= most:
        raise ValueTooLarge(ref.uri, last - first + 1, most)
    part, at = bytearray(), 0
    async for piece in payloads.fetch(ref):
        part += piece[max(0, first - at) : max(0, last + 1 - at)]
        at += len(piece)
    return bytes(part)
