"""Decoding of records of `__consumer_offsets`: committed offsets with their times."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from streams.lag.evaluation import OffsetCommit

OFFSETS_TOPIC = "__consumer_offsets"
_OFFSET_COMMIT_KEYS = (0, 1)
_NEWEST_FIXED_VALUE, _NEWEST_VALUE = 3, 4
Position = tuple[str, str, int]
"""A group, a topic and a partition."""


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit of a group for one partition; None if the offset was deleted."""

    position: Position
    commit: OffsetCommit | None


def decode(key: bytes | None, value: bytes | None) -> CommitRecord | None:
    """Decode a record; None if it is not a commit, or of a version that is not known."""
    if key is None:
        return None
    try:
        position = _position(key)
        if position is None:
            return None
        if value is None:
            return CommitRecord(position, None)
        commit = _commit(value)
        return None if commit is None else CommitRecord(position, commit)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None


def partition_of(group: str, partition_count: int) -> int:
    """Return the partition of the topic with a group's commits, by Java's hash of its id."""
    code = 0
    units = group.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partition_count


def _position(key: bytes) -> Position | None:
    (version,) = struct.unpack_from(">h", key)
    if version not in _OFFSET_COMMIT_KEYS:
        return None
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    return group, topic, partition


def _commit(value: bytes) -> OffsetCommit | None:
    version, offset = struct.unpack_from(">hq", value)
    if not 0 <= version <= _NEWEST_VALUE:
        return None
    at = 10 + (4 if version >= _NEWEST_FIXED_VALUE else 0)  # the leader's epoch
    if version <= _NEWEST_FIXED_VALUE:
        _, at = _text(value, at)
    else:
        length, at = _varint(value, at)
        at += max(0, length - 1)
    (at_ms,) = struct.unpack_from(">q", value, at)
    return OffsetCommit(offset, at_ms)


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + max(0, length)
    return data[at + 2 : end].decode("utf-8"), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
