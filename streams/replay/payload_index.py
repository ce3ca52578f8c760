"""The payloads that events refer to, each once; in a temporary file, not in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from streams.collector.core import retained_id
from streams.events.model import Event, PayloadRef
from streams.events.types import ResultExpired, ResultStored, typed

_TABLES = """
CREATE TABLE payload (
  sha256 TEXT PRIMARY KEY, uri TEXT, media_type TEXT, byte_length INTEGER,
  root_id INTEGER, seq INTEGER, event_id INTEGER, carried INTEGER, seen INTEGER DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE stored (sha256 TEXT, result_id INTEGER, PRIMARY KEY (sha256, result_id)) WITHOUT ROWID;
CREATE TABLE expired (result_id INTEGER PRIMARY KEY);
"""
_ADD = """
INSERT INTO payload (sha256, uri, media_type, byte_length, root_id, seq, event_id, carried)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (sha256) DO UPDATE SET carried = carried OR excluded.carried
"""
_COLUMNS = "sha256, uri, media_type, byte_length, root_id, seq, event_id"
_NOT_EXPIRED = """
SELECT count(*) = 0 OR count(*) > count(expired.result_id)
FROM stored LEFT JOIN expired USING (result_id) WHERE sha256 = ?
"""


class IndexedPayload(NamedTuple):
    """A payload, and the first event that refers to it."""

    sha256: str
    uri: str
    media_type: str
    byte_length: int
    root_id: int
    seq: int
    event_id: int

    @property
    def ref(self) -> PayloadRef:
        """Its reference."""
        return PayloadRef(self.uri, self.sha256, self.media_type, self.byte_length)

    @property
    def event(self) -> str:
        """The event, for messages."""
        return f"event {self.seq} ({self.event_id}) of execution {self.root_id}"


class PayloadIndex:
    """Collects references in the order of the log; returns them by digest."""

    def __init__(self) -> None:
        # An empty name is a private database that SQLite moves to disk as it grows.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript(_TABLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def add(self, events: Iterable[Event]) -> None:
        """Add the references of events."""
        self._db.execute("BEGIN")
        for event in events:
            self._add(event)
        self._db.execute("COMMIT")

    def _add(self, event: Event) -> None:
        known = typed(event) if event.type in (ResultStored.TYPE, ResultExpired.TYPE) else None
        if isinstance(known, ResultExpired):
            self._db.execute("INSERT OR IGNORE INTO expired VALUES (?)", (known.result_id,))
        if (ref := event.payload_ref) is None:
            return
        of_result = isinstance(known, ResultStored)
        name = (ref.sha256, ref.uri, ref.media_type, ref.byte_length)
        place = (event.root.id, event.seq, event.event_id, not of_result)
        self._db.execute(_ADD, (*name, *place))
        if isinstance(known, ResultStored):
            row = (ref.sha256, known.result_id)
            self._db.execute("INSERT OR IGNORE INTO stored VALUES (?, ?)", row)

    def payloads(self) -> Iterator[IndexedPayload]:
        """Yield every payload, by digest; they may be marked meanwhile."""
        yield from self._pages("TRUE")

    def find(self, sha256: str) -> IndexedPayload | None:
        """Return a payload by its digest."""
        sql = f"SELECT {_COLUMNS} FROM payload WHERE sha256 = ?"  # noqa: S608
        row = self._db.execute(sql, (sha256,)).fetchone()
        return None if row is None else IndexedPayload._make(row)

    def mark(self, sha256: str) -> None:
        """Record that a payload was seen."""
        self._db.execute("UPDATE payload SET seen = 1 WHERE sha256 = ?", (sha256,))

    def is_marked(self, sha256: str) -> bool:
        """Return whether a payload was seen."""
        sql = "SELECT seen FROM payload WHERE sha256 = ?"
        row = self._db.execute(sql, (sha256,)).fetchone()
        return row is not None and bool(row[0])

    def unseen(self) -> Iterator[IndexedPayload]:
        """Yield the payloads that were not marked, by digest."""
        yield from self._pages("NOT seen")

    def _pages(self, condition: str) -> Iterator[IndexedPayload]:
        sql = f"SELECT {_COLUMNS} FROM payload WHERE {condition} AND sha256 > ?"  # noqa: S608
        after = ""
        while rows := self._db.execute(f"{sql} ORDER BY sha256 LIMIT 1000", (after,)).fetchall():
            yield from map(IndexedPayload._make, rows)
            after = rows[-1][0]

    def is_expired(self, payload: IndexedPayload) -> bool:
        """Return whether events expired every reference to a payload, by the collector's rule."""
        by_id = "SELECT 1 FROM expired WHERE result_id = ?"
        if self._db.execute(by_id, (retained_id(payload.root_id, payload.sha256),)).fetchone():
            return True
        sql = "SELECT carried FROM payload WHERE sha256 = ?"
        (carried,) = self._db.execute(sql, (payload.sha256,)).fetchone()
        (is_held,) = self._db.execute(_NOT_EXPIRED, (payload.sha256,)).fetchone()
        return not carried and not is_held
