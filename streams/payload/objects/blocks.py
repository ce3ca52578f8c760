"""Format of packed objects: self-describing blocks.

Each block follows a mark of 24 bytes, which is a skippable frame in zstd's format. An object
packed with zstd is therefore an ordinary zstd file, and `zstd -d` unpacks it.

    magic 0x184D2A5E | 16 | "NOETL" | version | codec | cipher | stored bytes | plain bytes

Integers are little-endian, 32 bits wide; version, codec and cipher are one byte each. An
object that does not begin with a mark is the payload itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Protocol

import cramjam

from streams.payload.port import Compression, Scope

BLOCK_BYTES = 1 << 20
"""Plain bytes of a written block."""
LARGEST_BLOCK_BYTES = 16 << 20
"""Most plain bytes of a block when reading: more is rejected, which bounds memory."""

_MARK = struct.Struct("<II5sBBBII")
_LEAD = _MARK.pack(0x184D2A5E, 16, b"NOETL", 1, 0, 0, 0, 0)[:14]
_NUMBERS: dict[Compression, int] = {"none": 0, "zstd": 1, "gzip": 2, "lz4": 3}
# Not pyarrow's: importing it takes 25 MB, which a process that only moves payloads can save.
_CODECS = {1: cramjam.zstd, 2: cramjam.gzip, 3: cramjam.lz4}
_LEVEL = 1


class Cipher(Protocol):
    """Encrypts blocks after packing and decrypts them before unpacking."""

    number: int
    """Written into marks; 0 is NoCipher."""

    def seal(self, scope: Scope, index: int, block: bytes) -> bytes:
        """Encrypt the block at this index of an object of this scope."""
        ...

    def open(self, scope: Scope, index: int, block: bytes) -> bytes:
        """Decrypt a block.

        Raises:
            BadBlock: it was changed, or its key is missing.
        """
        ...


class NoCipher:
    """Does not encrypt."""

    number = 0

    def seal(self, scope: Scope, index: int, block: bytes) -> bytes:
        """Return the block."""
        return block

    def open(self, scope: Scope, index: int, block: bytes) -> bytes:
        """Return the block."""
        return block


class BadBlock(Exception):
    """A stored object cannot be unpacked; handled within the store."""


class Bomb(BadBlock):
    """It unpacks to more than its reference says."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the stored object unpacks to more than {limit} bytes")


class Packer:
    """Packs the blocks of one object, in their order."""

    def __init__(self, scope: Scope, compression: Compression, cipher: Cipher) -> None:
        self._scope, self._cipher, self._index = scope, cipher, 0
        self._number = _NUMBERS[compression]

    def pack(self, block: bytes) -> bytes:
        """Return one block behind its mark."""
        codec = _CODECS.get(self._number)
        stored = block if codec is None else bytes(codec.compress(block, _LEVEL))
        stored = self._cipher.seal(self._scope, self._index, stored)
        self._index += 1
        numbers = (1, self._number, self._cipher.number, len(stored), len(block))
        return _MARK.pack(0x184D2A5E, 16, b"NOETL", *numbers) + stored


def pack(scope: Scope, data: bytes, compression: Compression, cipher: Cipher) -> bytes:
    """Return `data` as stored: packed, or unchanged without compression and cipher.

    Data that looks like a mark is always packed, so that it is not mistaken for one.
    """
    if compression == "none" and cipher.number == 0 and not data.startswith(_LEAD):
        return data
    packer = Packer(scope, compression, cipher)
    starts = range(0, max(len(data), 1), BLOCK_BYTES)
    return b"".join([packer.pack(data[at : at + BLOCK_BYTES]) for at in starts])


class Unpacker:
    """Unpacks an object as its pieces arrive, and never yields more than `limit` bytes."""

    def __init__(self, scope: Scope, limit: int, cipher: Cipher) -> None:
        self._scope, self._remaining, self._limit, self._cipher = scope, limit, limit, cipher
        self._waiting = bytearray()
        self._plain: bool | None = None
        self._index = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the bytes that can be unpacked so far.

        Raises:
            BadBlock: the object is damaged, or larger than it may be.
        """
        if self._plain:
            yield self._counted(piece)
            return
        self._waiting += piece
        if self._plain is None:
            if len(self._waiting) < len(_LEAD) and _LEAD.startswith(self._waiting):
                return
            self._plain = not self._waiting.startswith(_LEAD)
            if self._plain:
                yield self._counted(bytes(self._waiting))
                self._waiting.clear()
                return
        while (block := self._block()) is not None:
            yield block

    def finish(self) -> Iterator[bytes]:
        """Yield the remaining bytes after the last piece.

        Raises:
            BadBlock: the object ends too early.
        """
        if self._plain is None and self._waiting:
            yield self._counted(bytes(self._waiting))
        elif self._waiting and not self._plain:
            raise BadBlock("the stored object ends within a block")

    def _block(self) -> bytes | None:
        if len(self._waiting) < _MARK.size:
            return None
        mark = _MARK.unpack_from(self._waiting)
        stored_bytes, plain_bytes = mark[-2:]
        if bytes(self._waiting[: len(_LEAD)]) != _LEAD:
            raise BadBlock("the stored object has no mark where a block should begin")
        if plain_bytes > self._remaining:
            raise Bomb(self._limit)
        if plain_bytes > LARGEST_BLOCK_BYTES or stored_bytes > 2 * LARGEST_BLOCK_BYTES:
            raise BadBlock(f"the stored object has a block of {plain_bytes} bytes, too many")
        end = _MARK.size + stored_bytes
        if len(self._waiting) < end:
            return None
        stored = bytes(memoryview(self._waiting)[_MARK.size : end])
        del self._waiting[:end]
        block = self._counted(self._opened(stored, mark[4], mark[5], plain_bytes))
        self._index += 1
        return block

    def _opened(self, stored: bytes, codec: int, cipher: int, plain_bytes: int) -> bytes:
        if cipher not in (0, self._cipher.number):
            raise BadBlock(f"the stored object is sealed by cipher {cipher}, which is not set up")
        if cipher:
            stored = self._cipher.open(self._scope, self._index, stored)
        return _unpacked(stored, codec, plain_bytes)

    def _counted(self, data: bytes) -> bytes:
        if len(data) > self._remaining:
            raise Bomb(self._limit)
        self._remaining -= len(data)
        return data


def unpack(scope: Scope, stored: bytes, limit: int, cipher: Cipher) -> bytes:
    """Return the payload in a stored object.

    Raises:
        BadBlock: it is damaged, or unpacks to more than `limit` bytes.
    """
    if not stored.startswith(_LEAD):
        return stored
    unpacker = Unpacker(scope, limit, cipher)
    return b"".join([*unpacker.feed(stored), *unpacker.finish()])


def most_stored(byte_length: int) -> int:
    """Return the most stored bytes of a payload of `byte_length` bytes."""
    return byte_length + byte_length // 64 + 4096


def _unpacked(stored: bytes, number: int, plain_bytes: int) -> bytes:
    if number == 0:
        data = stored
    elif (codec := _CODECS.get(number)) is None:
        raise BadBlock(f"the stored object is packed by the unknown codec {number}")
    else:
        room = bytearray(plain_bytes)
        try:
            length = codec.decompress_into(stored, room)
        except cramjam.DecompressionError as error:
            raise BadBlock(f"the stored object cannot be unpacked: {error}") from error
        data = bytes(memoryview(room)[:length])
    if len(data) != plain_bytes:
        raise BadBlock(f"a block has {len(data)} bytes, not {plain_bytes} as its mark says")
    return data
