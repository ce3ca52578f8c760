"""Unpacks an archive of jars, on every Python 3.11: its first patch releases have no filters."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from streams.errors import Refused


class UnsafeArchive(Refused):
    """An archive with an entry that is not a plain file inside its folder."""

    def __init__(self, source: Path, name: str) -> None:
        super().__init__(
            f"{source}: {name!r} is not a plain file or folder inside the archive; "
            "nothing was unpacked: check where the archive comes from"
        )


def unpack(source: Path, target: Path) -> None:
    """Unpack a tar archive into `target`.

    Raises:
        UnsafeArchive: an entry would be written outside, or is a link or a device.
    """
    with tarfile.open(source) as archive:
        checked = list(_checked(archive, source, target))
        if hasattr(tarfile, "data_filter"):  # Python 3.11.4
            archive.extractall(target, checked, filter="data")
        else:
            archive.extractall(target, checked)  # noqa: S202 - checked above


def _checked(archive: tarfile.TarFile, source: Path, target: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the entries without their owners and special permissions."""
    folder = target.resolve()
    for entry in archive:
        inside = (folder / entry.name).resolve().is_relative_to(folder)
        if not (entry.isfile() or entry.isdir()) or not inside:
            raise UnsafeArchive(source, entry.name)
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        yield entry
