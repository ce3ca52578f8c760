"""Tier 2: bounded cache of payloads on the node's disk, which survives restarts.

Every process of the node shares the folder. A file's modification time is its last use; the
oldest are evicted first. Everything read is verified against the reference.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from streams.events.model import PayloadRef
from streams.payload.content import check, key_of
from streams.payload.errors import PayloadCorrupt
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk_quota import Account, DiskQuota, on_pages

_log = logging.getLogger(__name__)
_UNFINISHED_S = 3600.0


class PartialFile:
    """A copy being written: of its full length from the start, visible when complete.

    So recounts of the folder include it.
    """

    def __init__(
        self, path: Path, size: int, quota: DiskQuota, refused: Callable[[], None]
    ) -> None:
        self._path, self._size, self._left = path, size, size
        self._quota, self._refused = quota, refused
        self._unfinished = path.with_name(f"{path.name}.{uuid4().hex}.new")
        self._file: BinaryIO | None = self._unfinished.open("xb")
        try:
            self._file.truncate(size)
        except OSError:
            self._file.close()
            self._unfinished.unlink()
            raise

    def write(self, data: bytes) -> None:
        """Append a piece; on failure there will be no copy."""
        try:
            if self._file is not None:
                self._file.write(data)
                self._left -= len(data)
        except OSError:
            self.drop()

    def keep(self) -> None:
        """Make it visible to readers."""
        if self._left:
            self.drop()
        try:
            if self._file is not None:
                self._file.close()
                with self._quota.hold() as account:
                    replaced = self._path.stat().st_size if self._path.exists() else 0
                    self._unfinished.rename(self._path)
                    account.used -= on_pages(replaced)
                self._file = None
        except OSError:
            self.drop()

    def drop(self) -> None:
        """Remove it, unless it was completed."""
        if self._file is None:
            return
        with suppress(OSError):
            self._file.close()
        self._file = None
        self._refused()
        try:
            with self._quota.hold() as account:
                self._unfinished.unlink()
                account.used -= on_pages(self._size)
        except OSError:
            with suppress(OSError):
                self._unfinished.unlink()  # uncounted: the next count is lower


class DiskCache:
    """Files named by the hash of their key. Failures are ignored: it is only a cache."""

    def __init__(self, folder: Path, max_bytes: int, counts: TierCounts) -> None:
        self._folder, self._max_bytes, self._counts = folder, max_bytes, counts
        self._quota = DiskQuota(
            folder / "ledger", lambda: sum(size for _, size, _ in self._files()), wait_s=1.0
        )
        self._in_use = 0

    def get(self, ref: PayloadRef) -> bytes | None:
        """Return the verified bytes; a damaged file is removed."""
        path = self._path(ref)
        try:
            if path.stat().st_size != ref.byte_length:
                raise PayloadCorrupt(ref.uri, "another length")
            data = check(ref, path.read_bytes())
            os.utime(path)
        except FileNotFoundError:
            return None
        except PayloadCorrupt:
            self._counts.fell_through["disk corrupt"] += 1
            self.drop(ref)
            return None
        except OSError as error:
            self._counts.fell_through["disk unreadable"] += 1
            _log.debug("%s: %s", path, error)
            return None
        return data

    def open(self, ref: PayloadRef) -> BinaryIO | None:
        """Return the copy as an open, verified file; otherwise like `get`."""
        path = self._path(ref)
        try:
            file = path.open("rb")
        except OSError:
            return None
        try:
            if file_digest(file, "sha256").hexdigest() == ref.sha256 and (
                file.tell() == ref.byte_length
            ):
                os.utime(path)
                file.seek(0)
                return file
            self._counts.fell_through["disk corrupt"] += 1
            self.drop(ref)
        except OSError as error:
            self._counts.fell_through["disk unreadable"] += 1
            _log.debug("%s: %s", path, error)
        file.close()
        return None

    def put(self, ref: PayloadRef, data: bytes) -> None:
        """Store a copy, if there is or can be room for it."""
        if (draft := self.draft(ref)) is not None:
            draft.write(data)
            draft.keep()

    def draft(self, ref: PayloadRef) -> PartialFile | None:
        """Make room for a copy that arrives in pieces; None: it exists, or there is no room.

        One payload must not evict most of the others, so large ones are not cached.
        """
        path, size = self._path(ref), on_pages(ref.byte_length)
        if size > self._max_bytes // 4:
            return None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._quota.hold() as account:
                if path.exists():
                    return None
                if not self._make_room(account, size):
                    self._refuse()
                    return None
                draft = PartialFile(path, ref.byte_length, self._quota, self._refuse)
                account.used += size
            return draft
        except OSError as error:
            self._refuse()
            _log.debug("%s is not cached on disk: %s", ref.uri, error)
            return None

    def _refuse(self) -> None:
        self._counts.events["disk refused"] += 1

    def drop(self, ref: PayloadRef) -> None:
        """Remove the copy, if there is one."""
        path = self._path(ref)
        with suppress(OSError), self._quota.hold() as account:
            size = on_pages(path.stat().st_size)
            path.unlink()
            account.used -= size

    @property
    def bytes_in_use(self) -> int:
        """Bytes in use by all processes of the node; the last known value if unreadable."""
        with suppress(OSError), self._quota.hold() as account:
            self._in_use = account.used
        return self._in_use

    def recount(self) -> None:
        """Recount the folder, as after a crash the number may be wrong; evict to fit the limit."""
        with suppress(OSError), self._quota.hold() as account:
            self._evict(account, self._max_bytes)

    def _make_room(self, account: Account, size: int) -> bool:
        if account.used + size > self._max_bytes:
            # A tenth more than needed, or a full folder would be recounted for every file.
            self._evict(account, self._max_bytes - max(size, self._max_bytes // 10))
        return account.used + size <= self._max_bytes

    def _evict(self, account: Account, bound: int) -> None:
        """Remove the oldest files until the rest fits `bound`, except those being written."""
        files = sorted(self._files())
        used, now = sum(size for _, size, _ in files), time.time()
        for at, size, path in files:
            is_new = path.endswith(".new")
            if at >= now - _UNFINISHED_S if is_new else used <= bound:
                continue
            with suppress(FileNotFoundError):
                os.unlink(path)
            used -= size
            self._counts.events["evicted"] += 1
        account.used = used

    def _files(self) -> Iterator[tuple[float, int, str]]:
        for folder, _, names in os.walk(self._folder):
            for name in names:
                if name != "ledger":
                    path = os.path.join(folder, name)
                    with suppress(FileNotFoundError):
                        found = os.stat(path)
                        yield found.st_mtime, on_pages(found.st_size), path

    def _path(self, ref: PayloadRef) -> Path:
        name = sha256(key_of(ref).encode()).hexdigest()
        return self._folder / name[:2] / name


def open_disk_cache(folder: Path, max_bytes: int, counts: TierCounts) -> DiskCache | None:
    """Return the node's disk cache; None if its folder cannot be used, or has no budget."""
    if not max_bytes:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("%s cannot be used: payloads are not cached on disk: %s", folder, error)
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        _log.warning("%s cannot be written: payloads are not cached on disk", folder)
        return None
    cache = DiskCache(folder, max_bytes, counts)
    cache.recount()
    return cache
