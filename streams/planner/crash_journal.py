"""Remembers across deaths of a planner which executions it was busy with.

The feed's journal counts records. An execution can end the planner without one: as it is
taken over from the log at the start, or as its time comes. So deaths are counted against
executions, too, and one that caused three is suspended.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

DEATHS = 3


class Notes(Protocol):
    """A few bytes that outlive the process, though perhaps not the machine."""

    def read(self) -> bytes:
        """Return what was written last; nothing at first."""
        ...

    def write(self, content: bytes) -> None:
        """Put `content`, which has no newline, in the place of what was there."""
        ...


@dataclass(frozen=True, slots=True)
class Death:
    """The planner died while it did this with an execution; `at` says it in words."""

    execution_id: int
    kind: str
    at: str


class Blame:
    """Who was being handled when this planner died before, and who is now."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._deaths = _parse(notes.read())
        self._write(())

    def deaths(self, execution_id: int) -> int:
        """Return how often the planner died of it, as far as anyone can tell."""
        return sum(one.execution_id == execution_id for one in self._deaths)

    def last(self, execution_id: int) -> str:
        """Say what was done with it at the last of those deaths, best of all which event."""
        found = [one for one in self._deaths if one.execution_id == execution_id]
        events = [one for one in found if one.kind == "event"]
        return (events or found)[-1].at

    def groups(self, execution_ids: Iterable[int]) -> Iterator[list[int]]:
        """Yield whom to handle together: the innocent at once and first, suspects alone."""
        ids = list(execution_ids)
        suspects = {one.execution_id for one in self._deaths}
        if innocent := [key for key in ids if key not in suspects]:
            yield innocent
        for key in ids:
            if key in suspects:
                yield [key]

    def begin(self, kind: str, at: Mapping[int, str]) -> None:
        """Note that these are being handled from now on."""
        self._write(Death(key, kind, text) for key, text in at.items())

    def pause(self) -> None:
        """Note that none is being handled, though none was finished either."""
        self._write(())

    def end(self, kind: str, execution_ids: Iterable[int]) -> None:
        """Note that handling them went well: earlier deaths of that kind count no more."""
        if self._deaths:
            well = set(execution_ids)
            self._deaths = [
                one for one in self._deaths if one.kind != kind or one.execution_id not in well
            ]
        self._write(())

    def absolve(self, execution_id: int) -> None:
        """Count no death against an execution that was dealt with."""
        self._deaths = [one for one in self._deaths if one.execution_id != execution_id]
        self._write(())

    def _write(self, now: Iterable[Death]) -> None:
        rows = {"ended": [*map(_row, self._deaths)], "now": [*map(_row, now)]}
        self._notes.write(orjson.dumps(rows))


def _row(one: Death) -> tuple[int, str, str]:
    return one.execution_id, one.kind, one.at


def _parse(content: bytes) -> list[Death]:
    """Read what an earlier life wrote; unreadable notes cost only the memory of past deaths."""
    try:
        raw = orjson.loads(content)
        return [Death(int(key), kind, at) for key, kind, at in (*raw["ended"], *raw["now"])]
    except (ValueError, TypeError, KeyError):
        return []


class FileNotes:
    """Notes in a file of this process's own. No fsync: it need only outlive the process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def read(self) -> bytes:
        """Return the file's first line."""
        return os.pread(self._file, 1 << 24, 0).partition(b"\n")[0]

    def write(self, content: bytes) -> None:
        """Write the first line; what a longer one left behind it does not count."""
        os.pwrite(self._file, content + b"\n", 0)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)


class MemoryNotes:
    """Notes in memory, for tests and the simulator."""

    def __init__(self) -> None:
        self._content = b""

    def read(self) -> bytes:
        """Return what was written last."""
        return self._content

    def write(self, content: bytes) -> None:
        """Keep it."""
        self._content = content
