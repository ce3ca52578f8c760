"""One suite for every reader of projected rows: they come back as they were saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial

import pytest

from streams.app import open_log, open_pool
from streams.events.model import NewEvent
from streams.payload.port import Scope
from streams.projector.memory import MemoryProjections
from streams.projector.port import ProjectionStore
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import (
    CommandRow,
    ExecutionRow,
    FrameRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
)
from streams.projector.views import Views, by_root
from streams.replay.audit.compare import differences
from streams.replay.audit.memory import MemoryProjectedRows
from streams.replay.audit.port import ProjectedRow, ProjectedRows
from streams.replay.audit.postgres import PostgresProjectedRows
from streams.settings import Settings
from tests.support.events.examples import full_payload, payload
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story, memory_log, stored_events

ID = 1000
BARRIERS = """
SELECT barrier, seq, checksum, state_ref->>'chain' FROM noetl.checkpoint
WHERE execution_id = $1 ORDER BY barrier"""
ROWS = (StageRow, FrameRow, CommandRow, ResultRefRow)
KINDS = (ExecutionRow, *ROWS, SnapshotRow)
LOCATION = "s3://payloads/"


@dataclass
class Tables:
    """A store of projections, and the reader of the same tables."""

    store: ProjectionStore
    rows: ProjectedRows


@pytest.fixture
async def tables(place: Settings | None) -> AsyncIterator[Tables]:
    if place is None:
        store = MemoryProjections()
        yield Tables(store, MemoryProjectedRows(store))
        return
    async with open_pool(dsn(place, "project")) as pool, open_pool(dsn(place, "read")) as reading:
        real = PostgresProjections(pool, LOCATION)
        await real.clear()
        yield Tables(real, PostgresProjectedRows(reading))


async def saved(tables: Tables, through: int = 20) -> list[Row]:
    """Save an execution as of an event, with snapshots; return the newest rows."""
    log, story = memory_log(), Story(ID)
    for event in _events(story)[:through]:
        await log.append([event])
    views = Views(log, snapshot_interval=5)
    changes = (await views.fold(by_root(await stored_events(log, story.root)))).changes
    await tables.store.save(changes, ())
    return [row for kind in KINDS for row in changes.of(kind)]


def _events(story: Story) -> list[NewEvent]:
    """Return the events of a story with a result, and with payloads of every field."""
    meta = {"result_id": "77", "store": "s3", "scope": "step"}
    meta["expires_at"] = "2026-05-17T12:00:00.000Z"
    result = {"extracted": {"n": [1, 2.5, None]}, "preview": "x"}
    stored = story.event(
        "result.stored", node_name="load", meta=meta, payload_ref=payload(), result=result
    )
    events = story.whole()
    committed = replace(events[8], payload_ref=full_payload())
    return [*events[:8], committed, *events[9:15], stored, *events[15:]]


async def test_rows_come_back_as_they_were_saved(tables: Tables) -> None:
    rows = [one for one in await saved(tables) if type(one) in ROWS]
    assert {type(one) for one in rows} == set(ROWS)
    for row in rows:
        (found,) = (await tables.rows.rows(type(row), [row.key[0], 5])).values()
        assert list(differences(found, row)) == []


async def test_an_execution_comes_with_its_open_rows(tables: Tables) -> None:
    rows = await saved(tables, 9)
    own, *others = (one for one in rows if type(one) in (ExecutionRow, *ROWS))
    found = await tables.rows.execution(ID)
    assert found is not None
    assert list(differences(ProjectedRow(found.row, found.checksum), own)) == []
    expected = {one.key: one for one in others if getattr(one, "completed_at", None) is None}
    assert {one.row.key for one in found.still_open} == set(expected)
    for one in found.still_open:
        assert list(differences(one, expected[one.row.key])) == []
    assert await tables.rows.execution(7) is None


async def test_ids_of_rows_come_page_by_page(tables: Tables) -> None:
    rows = await saved(tables)
    frames = [(one.key[0], one.last_seq) for one in rows if isinstance(one, FrameRow)]
    first = await tables.rows.keys(FrameRow, ID, 20, after=0, limit=1)
    rest = await tables.rows.keys(FrameRow, ID, 20, after=first[0].key, limit=5)
    assert [*first, *rest] == frames
    assert await tables.rows.keys(FrameRow, ID, 9, after=0, limit=5) == frames[:1]
    assert await tables.rows.keys(ResultRefRow, ID, 20, after=0, limit=5) == [(77, 16)]
    assert await tables.rows.keys(FrameRow, 7, 20, after=0, limit=5) == []


async def test_snapshots_come_in_order(tables: Tables, place: Settings | None) -> None:
    expected = [one for one in await saved(tables) if isinstance(one, SnapshotRow)]
    found, seq = [], 0
    while (one := await tables.rows.snapshot_after(ID, seq)) is not None:
        found.append(one)
        seq = one.seq
    assert found == expected
    assert [one.seq for one in found] == [5, 10, 15, 20]
    if place is not None:
        async with open_pool(dsn(place, "read")) as reading:
            barriers = [tuple(one) for one in await reading.fetch(BARRIERS, ID)]
        assert barriers == [(one.position, one.seq, one.checksum, one.chain) for one in found]


async def test_executions_are_listed_newest_first(tables: Tables, place: Settings | None) -> None:
    ids = [3000, 4000, 5000]
    for execution_id in ids:
        whole = Story(execution_id, tenant="listed").whole()
        await _appended(tables, place, whole if execution_id != 4000 else whole[:3])
    listed = partial(tables.rows.executions, Scope("listed", "care"))
    assert await listed(only_finished=False, before=None, limit=9) == [5000, 4000, 3000]
    assert await listed(only_finished=True, before=None, limit=9) == [5000, 3000]
    assert await listed(only_finished=False, before=5000, limit=1) == [4000]


async def _appended(tables: Tables, place: Settings | None, events: list[NewEvent]) -> None:
    """Append events to the log of a database; in memory, the rows stand for the log."""
    if place is not None:
        async with open_log(place, role="test") as log:
            for event in events:
                await log.store.append([event])
        return
    memory = memory_log()
    for event in events:
        await memory.append([event])
    stored = await stored_events(memory, events[0].root)
    await tables.store.save((await Views(memory).fold(by_root(stored))).changes, ())
