"""Records of `__consumer_offsets`, in the versions that Kafka writes."""

from __future__ import annotations

import struct

import pytest

from streams.lag.commit_records import CommitRecord, decode, partition_of
from streams.lag.evaluation import OffsetCommit


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


KEY = struct.pack(">h", 1) + text("group") + text("topic") + struct.pack(">i", 3)
POSITION = ("group", "topic", 3)
TAIL = struct.pack(">q", 1_700_000_000_000)
VALUES = {
    0: struct.pack(">hq", 0, 42) + text("meta") + TAIL,
    1: struct.pack(">hq", 1, 42) + text("") + TAIL + struct.pack(">q", -1),
    2: struct.pack(">hq", 2, 42) + text("") + TAIL,
    3: struct.pack(">hqi", 3, 42, 7) + text("") + TAIL,
    4: struct.pack(">hqi", 4, 42, 7) + b"\x05meta" + TAIL + b"\x00",
}


@pytest.mark.parametrize("version", VALUES)
def test_a_commit_is_decoded(version: int) -> None:
    found = decode(KEY, VALUES[version])

    assert found == CommitRecord(POSITION, OffsetCommit(42, 1_700_000_000_000))


def test_a_deleted_offset_is_no_commit() -> None:
    assert decode(KEY, None) == CommitRecord(POSITION, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">h", 2) + text("group"), b"\x00\x03"),
        (struct.pack(">h", 9) + text("group"), VALUES[2]),
        (KEY, struct.pack(">hq", 99, 42)),
        (KEY, VALUES[2][:12]),
        (KEY[:4], VALUES[2]),
        (None, VALUES[2]),
    ],
)
def test_other_records_are_skipped(key: bytes | None, value: bytes | None) -> None:
    assert decode(key, value) is None


@pytest.mark.parametrize(
    ("group", "count", "partition"),
    [("a", 50, 47), ("noetl.planner", 1, 0), ("polygenelubricants", 50, 0), ("abc", 50, 4)],
)
def test_a_group_has_a_partition_by_its_hash(group: str, count: int, partition: int) -> None:
    assert partition_of(group, count) == partition


def test_a_negative_hash_counts_by_its_absolute_value() -> None:
    assert partition_of("noetl.worker.default", 50) == _size_of_negative_hash() % 50


def _size_of_negative_hash() -> int:
    code = 0
    for letter in "noetl.worker.default":
        code = 31 * code + ord(letter)
    code %= 1 << 32
    assert code >> 31, "the test is about a negative hash"
    return (1 << 32) - code
