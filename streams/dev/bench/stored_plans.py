"""Executions in the tables on a planner's disk, read while the planner runs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import rocksdict

from streams.planner.table_rows import EXECUTIONS

_TRIES, _PAUSE_S = 5, 0.5
_NUMBER = re.compile(rb"[0-9]+")


def stored_executions(folder: Path) -> set[int]:
    """Return the executions in all partitions of a planner's `folder` of tables."""
    found: set[int] = set()
    for database in folder.glob(f"**/{EXECUTIONS}-*.db"):
        found.update(_executions(database))
    return found


def _executions(database: Path) -> list[int]:
    """Read the keys of one partition; again if a compaction deleted a file meanwhile."""
    for number in range(1, _TRIES + 1):
        try:
            return list(_keys(database))
        except Exception:
            if number == _TRIES:
                raise
            time.sleep(_PAUSE_S)
    raise AssertionError


def _keys(database: Path) -> Iterator[int]:
    options = rocksdict.Options(raw_mode=True)
    opened = rocksdict.Rdict(
        str(database), options=options, access_type=rocksdict.AccessType.read_only()
    )
    try:
        for key, _ in opened.items():
            if isinstance(key, bytes) and _NUMBER.fullmatch(key):
                yield int(key)
    finally:
        opened.close()
