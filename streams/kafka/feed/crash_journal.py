"""Remembers across deaths of a process which records were being handled when it died.

A record that ended the process three times is set aside. After a death, everything that was
being handled is suspect and is handled one record at a time, so that the third death is
counted against one record only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from streams.kafka.feed.port import Place, Record

DEATHS = 3
Batch = Mapping[Place, list[Record]]


@dataclass(frozen=True, slots=True)
class Suspect:
    """Records of one place that were being handled when a process died."""

    place: Place
    first: int
    last: int

    def covers(self, record: Record) -> bool:
        """Tell whether `record` is among them."""
        return record.place == self.place and self.first <= record.offset <= self.last


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next with a part of a batch: handle it, or set its only record aside."""

    batch: Batch
    is_poison: bool = False


def steps(batch: Batch, suspects: Iterable[Suspect]) -> Iterator[Step]:
    """Split a batch so that each suspect stands alone; order within a place is kept."""
    suspects = tuple(suspects)
    if not suspects:
        yield Step(batch)
        return
    for place, records in batch.items():
        clean: list[Record] = []
        for record in records:
            deaths = sum(suspect.covers(record) for suspect in suspects)
            if deaths == 0:
                clean.append(record)
                continue
            if clean:
                yield Step({place: clean})
                clean = []
            yield Step({place: [record]}, is_poison=deaths >= DEATHS)
        if clean:
            yield Step({place: clean})


class Journal:
    """The file of one role: written before handling, and again after.

    No fsync: it need only outlive the process, not the machine.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        ended, handled = _parse(os.pread(self._file, 1 << 20, 0))
        self._suspects = [*ended, *handled]
        self._write(())

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Whatever was being handled at the deaths before this life."""
        return tuple(self._suspects)

    def begin(self, batch: Batch) -> None:
        """Note that these records are being handled from now on."""
        self._write(
            Suspect(place, records[0].offset, records[-1].offset)
            for place, records in batch.items()
        )

    def end(self, batch: Batch) -> None:
        """Note that they were handled, or are innocent of what comes next."""
        if self._suspects:
            done = {place: records[-1].offset for place, records in batch.items()}
            self._suspects = [
                one for one in self._suspects if one.last > done.get(one.place, one.last - 1)
            ]
        self._write(())

    def pause(self) -> None:
        """Note that nothing is being handled, though nothing was finished either."""
        self._write(())

    def close(self, *, is_blameless: bool) -> None:
        """Let go of the file; `is_blameless` when this end is no record's doing."""
        if is_blameless:
            self.pause()
        os.close(self._file)

    def _write(self, handled: Iterable[Suspect]) -> None:
        lines = {"ended": [_row(one) for one in self._suspects], "now": [*map(_row, handled)]}
        # A newline ends what counts; what a longer line left behind it does not.
        os.pwrite(self._file, orjson.dumps(lines) + b"\n", 0)


def _row(one: Suspect) -> tuple[str, int, int, int]:
    return one.place.topic, one.place.partition, one.first, one.last


def _parse(content: bytes) -> tuple[list[Suspect], list[Suspect]]:
    """Read the file's first line; an unreadable one costs only the memory of past deaths."""
    try:
        raw = orjson.loads(content.partition(b"\n")[0])
        ended, handled = (
            [
                Suspect(Place(topic, partition), first, last)
                for topic, partition, first, last in rows
            ]
            for rows in (raw["ended"], raw["now"])
        )
    except (ValueError, TypeError, KeyError):
        return [], []
    return ended, handled
