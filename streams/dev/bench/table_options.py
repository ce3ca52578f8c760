"""What a measured process of the bench of tables is given, and what it reports."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from typing import TypedDict

import orjson

TABLE = "things"
PARTITIONS = 4
NOTE = "x" * 48


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProcessOptions:
    """The mode of a measured process, and where it reads and writes."""

    mode: str
    bootstrap: str
    group: str
    topic: str
    folder: str
    instance: str = "one"
    count: int = 0
    """Keys of the table, or records to receive."""
    standbys: int = 0

    def argument(self) -> str:
        """Return the argument of the process's command line."""
        return orjson.dumps(asdict(self)).decode()


class ProcessLine(TypedDict, total=False):
    """One line of a process's standard output, in JSON."""

    ready_cpu_s: float
    """It is ready; the processor time that it has used."""
    owned: list[int]
    """Partitions that it can write."""
    standbys_ready: bool
    wrote: list[int]
    """Partitions of which records were written to the table."""
    handled: int
    """Records of a batch."""
    figures: dict[str, float]
    rows: dict[str, list[int]]


def options_given() -> TableProcessOptions:
    """Return the options on the command line of this process."""
    return TableProcessOptions(**orjson.loads(sys.argv[1]))


def report_ready() -> None:
    """Report that the tables are recovered and the agent reads."""
    report({"ready_cpu_s": time.process_time()})


def report(line: ProcessLine) -> None:
    """Write a line for the process that measures."""
    sys.stdout.write(orjson.dumps(line).decode() + "\n")
    sys.stdout.flush()


def row(number: int) -> tuple[bytes, bytes]:
    """Return a key and its value; both are JSON, which stock Faust decodes by default."""
    value = b'{"number":%d,"state":"running","attempt":1,"note":"%s"}'
    return b'"key-%09d"' % number, value % (number, NOTE.encode())


def rows_of(partition: int, start: int, end: int) -> dict[bytes, bytes]:
    """Return the rows of a partition whose numbers are in a range that begins at partition 0."""
    return dict(row(number) for number in range(start + partition, end, PARTITIONS))
