"""Packed objects: what they look like, and that nothing else passes for one."""

from __future__ import annotations

import os
import struct
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.payload.content import check, describe
from streams.payload.errors import PayloadCorrupt
from streams.payload.objects.blocks import (
    BLOCK_BYTES,
    BadBlock,
    Bomb,
    NoCipher,
    Unpacker,
    most_stored,
    pack,
    unpack,
)
from streams.payload.port import JSON, Compression, Scope
from tests.support.payload.stores import Shifted

ACME = Scope("acme", "care")
PLAIN = NoCipher()
codecs = st.sampled_from(["none", "zstd", "lz4", "gzip"])


@given(st.binary(max_size=300), codecs, st.integers(1, 50))
def test_what_was_packed_is_unpacked_in_pieces_of_any_size(
    data: bytes, codec: Compression, size: int
) -> None:
    stored = pack(ACME, data, codec, PLAIN)
    assert unpack(ACME, stored, len(data), PLAIN) == data
    unpacker = Unpacker(ACME, len(data), PLAIN)
    pieces = [stored[at : at + size] for at in range(0, len(stored), size)]
    blocks = [block for piece in pieces for block in unpacker.feed(piece)]
    assert b"".join([*blocks, *unpacker.finish()]) == data


@given(st.data(), codecs)
def test_a_changed_object_never_gives_other_bytes(data: st.DataObject, codec: Compression) -> None:
    content = b"the payload " * 20
    ref = describe(ACME, content, media_type=JSON)
    stored = bytearray(pack(ACME, content, codec, PLAIN))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(stored[: data.draw(st.integers(0, len(stored)))])
    for changed in (bytes(stored), cut):
        try:
            assert check(ref, unpack(ACME, changed, ref.byte_length, PLAIN)) == content
        except (BadBlock, PayloadCorrupt):
            continue


def test_a_packed_object_is_a_zstd_file() -> None:
    content = os.urandom(BLOCK_BYTES // 2) * 5
    stored = pack(ACME, content, "zstd", PLAIN)
    at, plain = 0, b""
    while at < len(stored):
        magic, length = struct.unpack_from("<II", stored, at)
        assert (magic, length) == (0x184D2A5E, 16)
        stored_bytes, plain_bytes = struct.unpack_from("<II", stored, at + 16)
        frame = stored[at + 24 : at + 24 + stored_bytes]
        assert frame.startswith(b"\x28\xb5\x2f\xfd")
        plain += pa.Codec("zstd").decompress(frame, plain_bytes, asbytes=True)
        at += 24 + stored_bytes
    assert plain == content


def test_a_bomb_takes_no_memory() -> None:
    bomb = pack(ACME, bytes(64 << 20), "zstd", PLAIN)
    tracemalloc.start()
    try:
        with pytest.raises(Bomb):
            list(Unpacker(ACME, 1000, PLAIN).feed(bomb))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_mark_that_lies_about_its_block_is_found_out() -> None:
    stored = bytearray(pack(ACME, bytes(5000), "zstd", PLAIN))
    struct.pack_into("<I", stored, 20, 10)
    with pytest.raises(BadBlock):
        unpack(ACME, bytes(stored), 5000, PLAIN)
    struct.pack_into("<I", stored, 20, 1 << 30)
    with pytest.raises(BadBlock, match="too many"):
        unpack(ACME, bytes(stored), 1 << 40, PLAIN)


def test_what_cannot_be_packed_stays_within_the_bound_of_a_read() -> None:
    for length in (0, 1, 4096, BLOCK_BYTES + 1):
        data = os.urandom(length)
        for codec in ("none", "zstd", "lz4", "gzip"):
            assert len(pack(ACME, data, codec, PLAIN)) <= most_stored(length)  # type: ignore[arg-type]


def test_a_cipher_seals_each_block_for_its_place() -> None:
    content = os.urandom(1000) * 1200
    sealed = pack(ACME, content, "zstd", Shifted())
    assert unpack(ACME, sealed, len(content), Shifted()) == content
    with pytest.raises(BadBlock, match="cipher 7"):
        unpack(ACME, sealed, len(content), PLAIN)
    with pytest.raises(BadBlock, match="another place"):
        unpack(Scope("other", "care"), sealed, len(content), Shifted())


def test_a_cipher_leaves_nothing_unpacked() -> None:
    assert b"secret" not in pack(ACME, b"secret", "none", Shifted())
