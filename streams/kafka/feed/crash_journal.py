"""The crash journal: what a process was handling when it died, persisted across restarts.

A subject has numbered items: the records of a partition by offset, executions by id. An item
that was being handled at three deaths is quarantined by its owner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

DEATHS = 3


@dataclass(frozen=True, slots=True)
class Suspect:
    """Items of one subject that were being handled when a process died."""

    subject: str
    first: int
    last: int
    activity: str = ""
    detail: str = ""

    def covers(self, subject: str, number: int) -> bool:
        """Return whether it includes `number` of `subject`."""
        return subject == self.subject and self.first <= number <= self.last


class JournalStorage(Protocol):
    """A few bytes that outlive the process, but not necessarily the machine."""

    def read(self) -> bytes:
        """Return the content; empty at first."""
        ...

    def write(self, content: bytes) -> None:
        """Replace the content; it must not contain a newline."""
        ...

    def close(self) -> None:
        """Close the storage."""
        ...


class CrashJournal:
    """Written before and after an item is handled.

    After a death, everything that was being handled is suspect. Owners handle suspects one at
    a time, so that the third death counts against one only.
    """

    def __init__(self, storage: JournalStorage) -> None:
        self._storage = storage
        self._suspects = _parse(storage.read())
        self._write(())

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """What was being handled at the deaths before this start, oldest first."""
        return tuple(self._suspects)

    def deaths(self, subject: str, number: int) -> int:
        """Return at how many deaths `number` was being handled."""
        return sum(one.covers(subject, number) for one in self._suspects)

    def begin(self, handled: Iterable[Suspect]) -> None:
        """Record that these are being handled from now on."""
        self._write(handled)

    def pause(self) -> None:
        """Record that nothing is being handled: a death from now on is not counted."""
        self._write(())

    def end(self, is_cleared: Callable[[Suspect], bool]) -> None:
        """Record success; drop the suspects that `is_cleared` accepts."""
        self._suspects = [one for one in self._suspects if not is_cleared(one)]
        self._write(())

    def close(self, *, is_clean_exit: bool) -> None:
        """Close the storage; `is_clean_exit`: nothing handled caused the exit."""
        if is_clean_exit:
            self._write(())
        self._storage.close()

    def _write(self, handled: Iterable[Suspect]) -> None:
        rows = {"ended": [*map(_row, self._suspects)], "now": [*map(_row, handled)]}
        self._storage.write(orjson.dumps(rows))


def _row(one: Suspect) -> tuple[str, int, int, str, str]:
    return one.subject, one.first, one.last, one.activity, one.detail


def _parse(content: bytes) -> list[Suspect]:
    """Parse the journal of an earlier process; an unreadable one counts no deaths."""
    try:
        raw = orjson.loads(content)
        return [
            Suspect(str(subject), int(first), int(last), str(activity), str(detail))
            for subject, first, last, activity, detail in (*raw["ended"], *raw["now"])
        ]
    except (ValueError, TypeError, KeyError):
        return []


class JournalFile:
    """Journal storage in a file, without fsync: it need not survive a machine crash."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def read(self) -> bytes:
        """Return the file's first line."""
        return os.pread(self._file, 1 << 24, 0).partition(b"\n")[0]

    def write(self, content: bytes) -> None:
        """Overwrite the first line; the rest of a longer one is ignored."""
        os.pwrite(self._file, content + b"\n", 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class MemoryJournalStorage:
    """Journal storage in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self._content = b""

    def read(self) -> bytes:
        """Return the content."""
        return self._content

    def write(self, content: bytes) -> None:
        """Replace the content."""
        self._content = content

    def close(self) -> None:
        """Do nothing: the content stays readable."""
