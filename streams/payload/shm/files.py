"""Regions as files: budget, expiry, and cleanup after crashes.

Every process of a space shares one budget and one ledger. A region's modification time is its
expiry time. It is written under a temporary name and renamed when it is sealed, so a region
with its final name is complete.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from streams.clock import Clock
from streams.payload.shm.header import SIZE, Header
from streams.payload.shm.region import NEW, NotHere, attach, fill, made, pages_of, renamed
from streams.payload.shm.space import Space
from streams.payload.tiers.counts import TierCounts
from streams.payload.tiers.disk_quota import Account, DiskQuota, on_pages

if TYPE_CHECKING:
    import pyarrow as pa

_UNFINISHED_S = 60.0
"""Age at which a region with a temporary name counts as abandoned."""
_FAR_S = 86_400.0
"""Longest lifetime: a later expiry comes from a clock that was set back since."""
_FORGOTTEN_S = 3600.0
"""How long after its expiry another stack's region counts as abandoned."""
_AT_ONCE_BYTES = 64 * 1024
"""Regions up to this size are written under the ledger's lock: faster than locking twice."""
_turns = count()


class FileRegions:
    """Writes regions, reads those of others, and removes expired ones."""

    def __init__(self, space: Space, budget_bytes: int, clock: Clock, counts: TierCounts) -> None:
        self._space, self._folder, self._prefix = space, space.folder, space.prefix
        self._budget, self._clock, self._counts = budget_bytes, clock, counts
        self._quota = DiskQuota(
            space.ledger,
            lambda: sum(on_pages(found.st_size) for _, found in self._regions(self._prefix)),
        )
        self._own: dict[str, float] = {}
        self._in_use = 0
        self._recounted_at = float("-inf")

    def share(self, stem: str, header: Header, data: bytes, until: float) -> str | None:
        """Create a region, or extend an existing one; None: there is no room.

        Raises:
            OSError: the ledger is locked, or the folder cannot be written.
        """
        name = self.name_of(stem)[1:]
        if not self._share(name, header, data, until):
            return None
        self._own[name] = until
        return f"/{name}"

    def name_of(self, stem: str) -> str:
        """Return the public name of a region."""
        return f"/{self._prefix}{stem}"

    def attach(self, name: str, wanted: Header) -> pa.Buffer:
        """Return the payload of a region without copying it.

        Raises:
            NotHere: it is gone, of another space, or another payload.
        """
        if name.startswith("/noetl-") and not name.startswith(f"/{self._prefix}"):
            raise NotHere("foreign")
        return attach(self._folder, name, wanted)

    def tend(self) -> None:
        """Remove the expired regions of this process."""
        now = self._clock.now().timestamp()
        due = [name for name, until in list(self._own.items()) if until <= now]
        if due:
            self._remove(due, now)

    def drop(self, stem: str) -> None:
        """Remove the region of a payload that was deleted."""
        self._remove([self._prefix + stem])

    def sweep(self) -> int:
        """Remove abandoned regions, such as after a crash; return how many.

        The bytes in use are recounted.
        """
        with suppress(OSError), self._quota.hold() as account:
            removed = self._recount(account) + self._remove_forgotten()
            self._counts.events["sweeps"] += 1
            self._counts.events["swept"] += removed
            return removed
        return 0

    def close(self) -> None:
        """Remove the regions of this process that no other process extended.

        Readers keep their mappings.
        """
        self._remove(
            [name for name, until in self._own.items() if not self._is_extended(name, until)]
        )
        with suppress(OSError), self._quota.hold() as account:
            if not account.used:
                self._space.ledger.unlink()  # the next process recreates it

    def reserve(self, size: int, until: float) -> bool:
        """Reserve `size` bytes of the budget in total for regions that are not files.

        A sparse file of that length represents them. False: no room.

        Raises:
            OSError: the ledger is locked, or the folder cannot be written.
        """
        path = self._folder / self._space.reserve
        with self._quota.hold() as account:
            more = on_pages(size) - pages_of(path)
            if more > 0 and not self._has_room(account, more):
                return False
            number = os.open(path, NEW & ~os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                os.ftruncate(number, size)
                os.utime(number, (until, until))
            finally:
                os.close(number)
            account.used += more
        return True

    @property
    def bytes_in_use(self) -> int:
        """Bytes of all regions of the node; the last known value if it cannot be read."""
        with suppress(OSError), self._quota.hold() as account:
            self._in_use = account.used
        return self._in_use

    def _share(self, name: str, header: Header, data: bytes, until: float) -> bool:
        size, path = SIZE + len(data), self._folder / name
        passing = self._folder / f"{self._prefix}new-{os.getpid()}-{next(_turns)}"
        with self._quota.hold() as account:
            if self._is_there(path, size, until):
                self._counts.events["shared"] += 1
                return True
            if not self._has_room(account, on_pages(size)):
                return False
            number = made(passing, size)
            account.used += on_pages(size)
            if at_once := size <= _AT_ONCE_BYTES:
                try:
                    fill(number, header, data, until)
                    account.used -= renamed(passing, path)
                except BaseException:
                    account.used -= on_pages(size)
                    passing.unlink(missing_ok=True)
                    raise
        if not at_once:
            try:
                fill(number, header, data, until)
                with self._quota.hold() as account:
                    account.used -= renamed(passing, path)
            except BaseException:
                self._remove([passing.name])
                raise
        self._counts.events["written"] += 1
        return True

    def _is_there(self, path: Path, size: int, until: float) -> bool:
        """Extend the region, if another process has shared the same bytes already."""
        try:
            found = path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(found.st_mode) or (found.st_uid, found.st_size) != (os.geteuid(), size):
            return False
        if found.st_mtime < until:
            os.utime(path, (until, until))
        return True

    def _is_extended(self, name: str, until: float) -> bool:
        try:
            return (self._folder / name).stat(follow_symlinks=False).st_mtime > until + 0.001
        except OSError:
            return False

    def _has_room(self, account: Account, size: int) -> bool:
        if account.used + size <= self._budget:
            return True
        if size > self._budget or not self._may_recount():
            return False
        self._counts.events["swept"] += self._recount(account)
        return account.used + size <= self._budget

    def _may_recount(self) -> bool:
        """Allow a recount of a full folder at most once a second."""
        now = self._clock.monotonic()
        if now - self._recounted_at < 1.0:
            return False
        self._recounted_at = now
        return True

    def _recount(self, account: Account) -> int:
        now, used, removed = self._clock.now().timestamp(), 0, 0
        for entry, found in self._regions(self._prefix):
            is_new = entry.name.startswith(f"{self._prefix}new-")
            until = found.st_mtime + (_UNFINISHED_S if is_new else 0.0)
            if now < until <= now + _FAR_S:
                used += on_pages(found.st_size)
                continue
            with suppress(OSError):  # gone, or a folder, which is not ours
                os.unlink(entry.path)
                removed += 1
        account.used = used
        return removed

    def _remove_forgotten(self) -> int:
        """Remove abandoned regions of this user's other stacks."""
        before, removed = self._clock.now().timestamp() - _FORGOTTEN_S, 0
        for entry, found in self._regions(self._space.users):
            if found.st_mtime < before and "." not in entry.name:  # no ledger, no socket
                with suppress(OSError):
                    os.unlink(entry.path)
                    removed += 1
        return removed

    def _regions(self, prefix: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(prefix):
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        # Other users may create files here; they do not count against us.
                        if found.st_uid == os.geteuid():
                            yield entry, found

    def _remove(self, names: list[str], now: float | None = None) -> None:
        """Remove regions; with `now`, only those that were not extended."""
        with suppress(OSError), self._quota.hold() as account:
            for name in names:
                path = self._folder / name
                try:
                    found = path.stat(follow_symlinks=False)
                    if now is not None and found.st_mtime > now:
                        self._own[name] = found.st_mtime
                        continue
                    path.unlink()
                    account.used -= on_pages(found.st_size)
                except FileNotFoundError:
                    pass
                self._own.pop(name, None)
