"""Events in a bundle: the sealed envelope and what the database assigned, byte for byte.

A record is a header (big-endian: seq, position, stream version, time in microseconds since 1970,
checksum, chain, length of the envelope), the envelope, and the CRC-32 of both. The CRC names the
event of a changed byte, also in fields that no checksum of the log covers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta

from streams.replay.bundle.errors import DamagedBundle
from streams.replay.port import StoredEvent

_HEADER = struct.Struct(">QQQq32s32sI")
_CRC = struct.Struct(">I")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def record_bytes(event: StoredEvent) -> bytes:
    """Return an event as a record."""
    at = (event.ingest_time.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    head = _HEADER.pack(
        event.seq,
        event.position,
        event.stream_version,
        at,
        event.checksum,
        event.chain,
        len(event.envelope),
    )
    data = head + event.envelope
    return data + _CRC.pack(zlib.crc32(data))


def records(data: bytes, entry: str, first_seq: int) -> Iterator[StoredEvent]:
    """Yield the events of an entry.

    Raises:
        DamagedBundle: a record does not match its CRC; the message has its event.
    """
    at, seq = 0, first_seq
    while at < len(data):
        if at + _HEADER.size + _CRC.size > len(data):
            raise DamagedBundle(f"{entry}, event {seq}", "its record is cut off")
        fields = _HEADER.unpack_from(data, at)
        begin = at + _HEADER.size
        end = begin + fields[-1]
        if end + _CRC.size > len(data) or _CRC.unpack_from(data, end)[0] != _crc(data, at, end):
            raise DamagedBundle(f"{entry}, event {seq}", "its record does not match its CRC")
        if fields[0] != seq:
            raise DamagedBundle(f"{entry}, event {seq}", f"the record there has seq {fields[0]}")
        yield _event(fields, data[begin:end])
        at, seq = end + _CRC.size, seq + 1


def _crc(data: bytes, begin: int, end: int) -> int:
    return zlib.crc32(memoryview(data)[begin:end])


def _event(fields: tuple[int, int, int, int, bytes, bytes, int], envelope: bytes) -> StoredEvent:
    seq, position, version, micros, checksum, chain, _ = fields
    at = _EPOCH + micros * _MICROSECOND
    return StoredEvent(seq, position, version, at, checksum, chain, envelope)
