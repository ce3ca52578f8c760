"""Values and ports of replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from streams.events.model import Root
from streams.payload.port import Scope
from streams.projector.rows import SnapshotRow

NO_CHAIN = bytes(32)
"""The chain before the first event of a root."""


class StoredEvent(NamedTuple):
    """An event as it lies in the log: sealed bytes, and what the database assigned."""

    seq: int
    position: int
    stream_version: int
    ingest_time: datetime
    checksum: bytes
    chain: bytes
    envelope: bytes


class LogSource(StrEnum):
    """Where the events of a root are."""

    LOG = "log"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class LogHead:
    """The newest place in a root, and its chain there."""

    scope: Scope
    seq: int
    chain: bytes
    source: LogSource = LogSource.LOG


class StoredPages(Protocol):
    """Reads events as they are stored."""

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        """Return a root's events in order of `seq`.

        Raises:
            Unavailable: the log cannot be reached.
        """
        ...


class StoredLog(StoredPages, Protocol):
    """Reads the log as it is stored, without trusting it.

    Every method raises Unavailable when the log cannot be reached.
    """

    async def head(self, root: Root) -> LogHead | None:
        """Return the head of a root; None if there is no such root."""
        ...

    async def seq_of_event(self, root: Root, event_id: int) -> int | None:
        """Return the place of an event in its root."""
        ...

    async def seq_at_time(self, root: Root, at: datetime) -> int:
        """Return the last place that was stored at `at` or before; 0 if there is none."""
        ...

    async def snapshot(self, root: Root, through_seq: int) -> SnapshotRow | None:
        """Return the newest snapshot of a root at or below a place."""
        ...

    async def seq_at_position(self, root: Root, position: int) -> int:
        """Return the last place of a root at or below a position of the whole log."""
        ...
