"""Entries of a bundle: a tar file in which names and contents determine every byte.

Tar, because it is written and read front to back, entry by entry, in constant memory, and any
tar program can list it; a zip file has its directory at the end, and fields without a checksum.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from streams.replay.bundle.errors import DamagedBundle, NotABundle, TruncatedBundle

BLOCK = 512
END = bytes(2 * BLOCK)
_PIECE_BYTES = 1 << 20
_MAX_NAME = 100
_DAMAGED_BYTES = 24


class EntryPlace(NamedTuple):
    """An entry: its name, and where its content is in the file."""

    name: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Where the next entry begins."""
        return self.offset + self.size + -self.size % BLOCK


def entry_header(name: str, size: int) -> bytes:
    """Return the header of an entry."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def padding(size: int) -> bytes:
    """Return the zeros after a content of this size."""
    return bytes(-size % BLOCK)


def entry(name: str, data: bytes) -> bytes:
    """Return a whole entry."""
    return entry_header(name, len(data)) + data + padding(len(data))


def place_of(header: bytes, offset: int, before: str) -> EntryPlace:
    """Return the entry of the header that ends at `offset`.

    Raises:
        DamagedBundle: it is not a header that `entry_header` makes.
    """
    where = f"the header at byte {offset - BLOCK}, after {before}"
    try:
        info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, ValueError) as error:
        raise DamagedBundle(where, f"is damaged ({error})") from error
    if not 0 < len(info.name) <= _MAX_NAME or entry_header(info.name, info.size) != header:
        raise DamagedBundle(where, "is not as export writes it")
    return EntryPlace(info.name, offset, info.size)


def entries(file: BinaryIO, name: str, first: str) -> Iterator[EntryPlace]:
    """Yield the entries of a bundle in order; the caller may seek meanwhile.

    `name` is the file's, for messages; `first` is the name of its first entry.

    Raises:
        NotABundle: the file does not begin with an entry.
        DamagedBundle: a header or the end is not as export writes it.
        TruncatedBundle: the file ends early.
    """
    if not (file_bytes := file.seek(0, 2)):
        raise NotABundle(name, "it is empty")
    if file_bytes < BLOCK and not _read(file, 0, file_bytes, name).startswith(first.encode()):
        raise NotABundle(name, "it does not begin with an entry of a tar file")
    offset, before = 0, "the beginning"
    while True:
        header = _read(file, offset, BLOCK, before)
        if header == END[:BLOCK]:
            break
        try:
            found = place_of(header, offset + BLOCK, before)
        except DamagedBundle as error:
            if offset == 0 and not _is_almost(header, entry_header(first, 0)):
                raise NotABundle(name, "it does not begin with an entry of a tar file") from error
            raise
        if found.end > file_bytes:
            raise TruncatedBundle(found.name)
        yield found
        offset, before = found.end, found.name
    if _read(file, offset, len(END), before) != END or file_bytes != offset + len(END):
        raise DamagedBundle(f"byte {offset}, after {before}", "other bytes follow the end")


def content(file: BinaryIO, place: EntryPlace) -> Iterator[bytes]:
    """Yield the content of an entry in pieces; its padding is checked at the end.

    Raises:
        DamagedBundle: its padding is not zeros.
        TruncatedBundle: the file ends early.
    """
    done = 0
    while done < place.size:
        wanted = min(_PIECE_BYTES, place.size - done)
        yield _read(file, place.offset + done, wanted, place.name)
        done += wanted
    zeros = padding(place.size)
    if _read(file, place.offset + place.size, len(zeros), place.name) != zeros:
        raise DamagedBundle(place.name, "its padding is not zeros")


def whole(file: BinaryIO, place: EntryPlace) -> bytes:
    """Return the content of a small entry."""
    return b"".join(content(file, place))


def _is_almost(header: bytes, expected: bytes) -> bool:
    """Return whether a header differs only in its size, its checksum and a few bytes."""
    return sum(one != other for one, other in zip(header, expected, strict=True)) <= _DAMAGED_BYTES


def _read(file: BinaryIO, offset: int, size: int, entry_name: str) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) < size:
        raise TruncatedBundle(entry_name)
    return data
