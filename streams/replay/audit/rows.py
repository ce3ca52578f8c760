"""Audit of the rows of one execution, page by page, while its log is folded."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from streams.events.model import Event
from streams.projector.core import ChangedRows, Touched, View, absorb
from streams.projector.digests import COMMAND, EXECUTION, FRAME, KIND_OF, PARTS, RESULT, STAGE
from streams.projector.rows import (
    CommandRow,
    ExecutionRow,
    FrameRow,
    ResultEndRow,
    ResultRefRow,
    Row,
    StageRow,
    row_id,
)
from streams.replay.audit.compare import differences, row_name
from streams.replay.audit.port import ProjectedExecution, ProjectedRow, ProjectedRows
from streams.replay.checks import Check, Status, failed, passed

_KINDS: dict[str, type[Row]] = {
    STAGE: StageRow,
    FRAME: FrameRow,
    COMMAND: CommandRow,
    RESULT: ResultRefRow,
}
_PAGE = 1000


@dataclass(slots=True)
class _Tally:
    """Rows of one kind: how many were compared, and what differed."""

    compared: int = 0
    wrong: int = 0
    first: str | None = None

    def differ(self, what: str) -> None:
        self.wrong += 1
        self.first = self.first or what


@dataclass(slots=True)
class RowAudit:
    """Compares each stored row with the fold at the row's own last event."""

    stored: ProjectedRows
    execution_id: int
    projected: ProjectedExecution | None
    view: View = field(default_factory=View)
    _tallies: dict[str, _Tally] = field(
        default_factory=lambda: {kind: _Tally() for kind in (EXECUTION, *PARTS)}
    )
    _still_open: dict[int, list[ProjectedRow]] = field(default_factory=dict)
    _seen: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self._seen = sqlite3.connect("", isolation_level=None)  # on disk as it grows
        self._seen.execute("CREATE TABLE seen (kind TEXT, key INTEGER, PRIMARY KEY (kind, key))")
        for one in () if self.projected is None else self.projected.still_open:
            self._still_open.setdefault(one.row.last_seq, []).append(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._seen.close()

    @property
    def through(self) -> int:
        """The last event that is projected."""
        return 0 if self.projected is None else self.projected.row.last_seq

    async def add(self, events: Sequence[Event]) -> None:
        """Fold events, and compare the rows that they made.

        Raises:
            Unavailable: the tables cannot be read.
        """
        ended: list[Row] = []
        for event in events:
            self.view, touched = absorb(self.view, event)
            ended += touched.ended
            if event.seq in self._still_open or event.seq == self.through:
                self._compare_open(event.seq, touched)
        await self._compare_ended([row for row in ended if row.last_seq <= self.through])

    def _compare_open(self, seq: int, touched: Touched) -> None:
        changed = ChangedRows()
        changed.add(touched, seq)
        expected = {(type(row), row.key): row for row in changed.rows(self.view)}
        if seq == self.through and self.projected is not None:
            own = ProjectedRow(self.projected.row, self.projected.checksum)
            self._compare(EXECUTION, own, expected[ExecutionRow, (self.execution_id,)])
        for stored in self._still_open.pop(seq, ()):
            kind = KIND_OF[type(stored.row)]
            row = expected.get((type(stored.row), stored.row.key))
            if row is None:
                self._tallies[kind].differ(
                    f"{row_name(kind, stored.row)}: the log makes no such row"
                )
            else:
                self._compare(kind, stored, row)

    async def _compare_ended(self, rows: Iterable[Row]) -> None:
        by_kind: dict[str, list[Row]] = {}
        for row in rows:
            by_kind.setdefault(KIND_OF[type(row)], []).append(row)
        for kind, expected in by_kind.items():
            found = await self.stored.rows(_KINDS[kind], [row_id(row) for row in expected])
            for row in expected:
                self._compare_one(kind, found.get(row_id(row)), row)

    def _compare_one(self, kind: str, stored: ProjectedRow | None, row: Row) -> None:
        name = row_name(kind, row)
        if isinstance(row, ResultEndRow):
            if stored is not None and stored.expired_at != row.expired_at:
                self._tallies[kind].differ(f"{name}: expired_at is {stored.expired_at}")
        elif stored is None:
            self._tallies[kind].differ(f"{name}: the row is missing")
        elif stored.row.last_seq < row.last_seq:
            self._tallies[kind].differ(f"{name}: the row is as of event {stored.row.last_seq}")
        elif stored.row.last_seq == row.last_seq or isinstance(row, ResultRefRow):
            self._compare(kind, stored, row)

    def _compare(self, kind: str, stored: ProjectedRow, row: Row) -> None:
        tally = self._tallies[kind]
        tally.compared += 1
        self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (kind, row.key[0]))
        if found := next(differences(stored, row), None):
            tally.differ(f"{row_name(kind, row)}: {found}")

    async def checks(self, head_seq: int) -> list[Check]:
        """Return a check for each kind of rows, once all events were added."""
        if self.projected is None:
            return [failed(EXECUTION, "it has no row: run the projector, or rebuild", "its row")]
        for kind in PARTS:
            async for key in self._unknown(kind):
                self._tallies[kind].differ(f"{kind} {key}: the log makes no such row")
        own = self._tallies[EXECUTION]
        if self.through > head_seq:
            own.differ(f"its row is as of event {self.through}, the log ends at {head_seq}")
        newer = head_seq - self.through
        found = [_check(EXECUTION, own, f"; {newer} events are not projected yet" if newer else "")]
        return found + [_check(kind, self._tallies[kind]) for kind in PARTS]

    async def _unknown(self, kind: str) -> AsyncIterator[int]:
        """Yield the stored rows that were not compared with any."""
        after = 0
        while page := await self.stored.keys(
            _KINDS[kind], self.execution_id, self.through, after=after, limit=_PAGE
        ):
            for key, _ in page:
                sql = "SELECT 1 FROM seen WHERE kind = ? AND key = ?"
                if self._seen.execute(sql, (kind, key)).fetchone() is None:
                    yield key
            after = page[-1].key


def _check(kind: str, tally: _Tally, note: str = "") -> Check:
    if tally.wrong:
        return failed(kind, f"{tally.wrong} of {tally.compared} compared differ", tally.first)
    if not tally.compared:
        return Check(kind, Status.NOT_APPLICABLE, "it has none")
    rows = "1 row" if tally.compared == 1 else f"{tally.compared} rows"
    return passed(kind, f"{rows} equal{note}")
