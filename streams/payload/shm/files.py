"""Regions as files: who may write how much, how long they live, and what a crash left.

Every process of a space shares one budget and one ledger. A region's modification
time is when it may be removed. It is written under a passing name and renamed when it is
sealed, so what has a lasting name is whole.
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
"""How old a region without a lasting name must be before it counts as abandoned."""
_FAR_S = 86_400.0
"""A region that would live longer was made by a clock that has been turned back since."""
_FORGOTTEN_S = 3600.0
"""What another stack left for so long after its time is left for good: nobody tends it."""
_AT_ONCE_BYTES = 64 * 1024
"""A region up to this size is written while the ledger is held: quicker than asking twice."""
_turns = count()


class FileRegions:
    """Writes regions, reads those of others, and removes what has had its time."""

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
        """Make a region, or let one that is there live longer; None: there is no room.

        Raises:
            OSError: the ledger is held by somebody else, or the folder cannot be written.
        """
        name = self.name_of(stem)[1:]
        if not self._share(name, header, data, until):
            return None
        self._own[name] = until
        return f"/{name}"

    def name_of(self, stem: str) -> str:
        """Return the name that readers know a region by."""
        return f"/{self._prefix}{stem}"

    def attach(self, name: str, wanted: Header) -> pa.Buffer:
        """Return the payload of a region without copying it.

        Raises:
            NotHere: it is gone, not of this space, or not what is wanted.
        """
        if name.startswith("/noetl-") and not name.startswith(f"/{self._prefix}"):
            raise NotHere("foreign")
        return attach(self._folder, name, wanted)

    def tend(self) -> None:
        """Remove the regions of this process that have had their time."""
        now = self._clock.now().timestamp()
        due = [name for name, until in list(self._own.items()) if until <= now]
        if due:
            self._remove(due, now)

    def drop(self, stem: str) -> None:
        """Remove the region of a payload that was deleted."""
        self._remove([self._prefix + stem])

    def sweep(self) -> int:
        """Remove what nobody else will, such as what a crash left; return how many there were.

        What is in use is counted anew.
        """
        with suppress(OSError), self._quota.hold() as account:
            removed = self._recount(account) + self._remove_forgotten()
            self._counts.events["sweeps"] += 1
            self._counts.events["swept"] += removed
            return removed
        return 0

    def close(self) -> None:
        """Remove the regions of this process that nobody else gave more time.

        Whoever reads one keeps what it has mapped.
        """
        self._remove(
            [name for name, until in self._own.items() if not self._is_extended(name, until)]
        )
        with suppress(OSError), self._quota.hold() as account:
            if not account.used:
                self._space.ledger.unlink()  # whoever comes next makes it anew

    def reserve(self, size: int, until: float) -> bool:
        """Take `size` bytes of the budget in all for regions that are no files.

        A file as long as they are stands for them, and holds none of them. False: no room.

        Raises:
            OSError: the ledger is held by somebody else, or the folder cannot be written.
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
        """What all processes of the node have in regions; what it was, where that is unknown."""
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
        """Let the region live longer, if somebody has shared the same bytes already."""
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
        """Look again at a full folder once a second at most."""
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
            with suppress(OSError):  # gone, or a folder, which nobody here has made
                os.unlink(entry.path)
                removed += 1
        account.used = used
        return removed

    def _remove_forgotten(self) -> int:
        """Remove regions of this user's other stacks that nobody tends any more."""
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
                        # Anybody may make files here; what is not ours takes nothing from us.
                        if found.st_uid == os.geteuid():
                            yield entry, found

    def _remove(self, names: list[str], now: float | None = None) -> None:
        """Remove regions; with `now`, those only that nobody gave more time."""
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
