"""Header of a region: its first 64 bytes.

Little-endian: magic `NOETLIPC`, format version u32, payload length u64, the payload's SHA-256;
then zeros, so that Arrow's buffers stay aligned. It is written last and so seals the region.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"NOETLIPC"
VERSION = 1
SIZE = 64
_FIELDS = struct.Struct("<8sIQ32s")
_PADDING = bytes(SIZE - _FIELDS.size)


class BadHeader(Exception):
    """These bytes are not the header of a sealed region."""


@dataclass(frozen=True, slots=True)
class Header:
    """Description of a sealed region's payload."""

    length: int
    sha256: bytes

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        return _FIELDS.pack(MAGIC, VERSION, self.length, self.sha256) + _PADDING


def unpack(data: bytes) -> Header:
    """Parse a header.

    Raises:
        BadHeader: it is incomplete, of another version, or not a header.
    """
    if len(data) != SIZE:
        raise BadHeader(f"{len(data)} bytes are not a header")
    magic, version, length, digest = _FIELDS.unpack_from(data)
    if magic != MAGIC or version != VERSION or data[_FIELDS.size :] != _PADDING:
        raise BadHeader("not sealed, or in another format")
    return Header(length, digest)
