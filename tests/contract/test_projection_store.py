"""One suite for every store of projections: what is saved, kept, and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest

from streams.app import open_pool
from streams.events.model import Event
from streams.payload.port import Scope
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.port import StateId
from streams.projector.business.postgres import PostgresBusiness
from streams.projector.core import View
from streams.projector.heads import ScannedRootHeads
from streams.projector.memory import KINDS, MemoryProjections
from streams.projector.port import Checkpoint, ProjectionStore, ProjectionsUnavailable
from streams.projector.postgres import PostgresProjections
from streams.projector.rebuild import rebuild
from streams.projector.rows import CatalogRow, Changes, ExecutionRow, OutputRow, StageRow
from streams.settings import Settings
from tests.support.events.examples import full_payload
from tests.support.log.databases import dsn
from tests.support.projector.business import CARE, BusinessBench, progress_in, states_in
from tests.support.projector.executions import AT, Story, memory_log, stored_events
from tests.support.projector.rows import rows_after

TABLES = {"execution": 1, "stage": 1, "frame": 2, "command": 1}
Seen = dict[str, list[dict[str, Any]]]


@dataclass
class Bench:
    """A store and a way to look into it."""

    store: ProjectionStore
    look: Callable[[], Awaitable[Seen]]
    business: MemoryBusiness | PostgresBusiness


@pytest.fixture
async def bench(place: Settings | None) -> AsyncIterator[Bench]:
    if place is None:
        store = MemoryProjections()
        yield Bench(store, lambda: _look_in_memory(store), MemoryBusiness(store))
        return
    async with open_pool(dsn(place, "project")) as pool:
        real = PostgresProjections(pool)
        await real.clear()
        yield Bench(real, lambda: _look_in_postgres(pool), PostgresBusiness(pool))


async def _look_in_memory(store: MemoryProjections) -> Seen:
    names = {kind: kind.__name__.removesuffix("Row").lower() for kind in KINDS}
    names[OutputRow] = "frame_output"
    seen: Seen = {
        name: [{field: getattr(row, field) for field in row.__slots__} for row in store.of(kind)]
        for kind, name in names.items()
    }
    seen["projection_checkpoint"] = [
        {"next_offset": one.next_offset} for one in store.checkpoints.values()
    ]
    return seen


async def _look_in_postgres(pool: asyncpg.Pool) -> Seen:
    tables = (*TABLES, "catalog", "frame_output", "projection_checkpoint")
    return {
        table: [dict(row) for row in await pool.fetch(f"SELECT * FROM noetl.{table} ORDER BY 1, 2")]
        for table in tables
    }


async def events_of(execution_id: int = 1000) -> list[Event]:
    log, story = memory_log(), Story(execution_id)
    for event in story.whole():
        await log.append([event])
    return await stored_events(log, story.root)


def changes_of(events: list[Event]) -> Changes:
    view, changes = View(), Changes()
    for event in events:
        view, rows = rows_after(view, event)
        changes.add(rows)
    return changes


async def test_every_row_of_an_execution_is_there(bench: Bench) -> None:
    await bench.store.save(changes_of(await events_of()), ())

    seen = await bench.look()

    assert {table: len(seen[table]) for table in TABLES} == TABLES
    (execution,) = seen["execution"]
    assert execution["execution_id"] == 1000
    assert (execution["status"], execution["last_seq"]) == ("COMPLETED", 19)
    assert [row["events_emitted"] for row in seen["frame"]] == [3, 6]


async def test_projected_twice_changes_nothing(bench: Bench) -> None:
    changes = changes_of(await events_of())
    await bench.store.save(changes, ())
    once = await bench.look()

    await bench.store.save(changes, ())

    assert await bench.look() == once


async def test_a_late_batch_does_not_take_a_newer_row_back(bench: Bench) -> None:
    events = await events_of()
    await bench.store.save(changes_of(events), ())
    newest = await bench.look()

    await bench.store.save(changes_of(events[:8]), ())

    assert await bench.look() == newest


async def test_many_small_batches_end_as_one_large_one(bench: Bench) -> None:
    events = await events_of()
    await bench.store.save(changes_of(events), ())
    at_once = await bench.look()
    await bench.store.clear()

    view = View()
    for event in events:
        view, rows = rows_after(view, event)
        changes = Changes()
        changes.add(rows)
        await bench.store.save(changes, ())

    assert await bench.look() == at_once


async def test_what_a_frame_gave_is_written_once(bench: Bench) -> None:
    row = OutputRow(
        frame_id=1010,
        stage_id=1001,
        execution_id=1000,
        tenant_id="acme",
        organization_id="care",
        step_name="load",
        schema_digest="0" * 64,
        row_count=5,
        byte_count=600,
        column_count=2,
        null_count=0,
        problem=None,
        last_seq=7,
    )
    for one in (row, replace(row, row_count=6)):
        changes = Changes()
        changes.add([one])
        await bench.store.save(changes, ())

    assert [seen["row_count"] for seen in (await bench.look())["frame_output"]] == [5]

    await bench.store.clear()
    assert (await bench.look())["frame_output"] == []


async def test_dropped_and_rebuilt_equals_live(bench: Bench) -> None:
    log = memory_log()
    for number in (1000, 2000):
        for event in Story(number).whole():
            await log.append([event])
    for number in (1000, 2000):
        root = Story(number).root
        await bench.store.save(changes_of(await stored_events(log, root)), ())
    live = await bench.look()

    await bench.store.clear()
    await rebuild(ScannedRootHeads(log), log, bench.store)

    assert await bench.look() == live


async def test_replaced_rows_are_those_of_one_root_up_to_a_place(bench: Bench) -> None:
    events, others = await events_of(), changes_of(await events_of(2000))
    await bench.store.save(others, ())
    alone = await bench.look()
    await bench.store.save(changes_of(events), ())
    whole = await bench.look()

    await bench.store.replace(events[0].root, len(events), Changes())
    assert await bench.look() == alone
    await bench.store.replace(events[0].root, len(events), changes_of(events))
    assert await bench.look() == whole


async def test_rows_that_a_live_projector_wrote_meanwhile_are_not_replaced(bench: Bench) -> None:
    events = await events_of()
    await bench.store.save(changes_of(events), ())
    newest = await bench.look()

    await bench.store.replace(events[0].root, 8, changes_of(events[:8]))

    assert await bench.look() == newest


async def test_a_checkpoint_goes_forward_and_begins_again_with_a_new_topic(bench: Bench) -> None:
    first = Checkpoint(
        projection="seen",
        shard_id="p-0",
        topic="noetl.events.execution",
        topic_id="t-1",
        partition=0,
        next_offset=10,
        last_position=7,
    )
    await bench.store.save(Changes(), [first])
    await bench.store.save(Changes(), [replace(first, next_offset=4)])
    assert [row["next_offset"] for row in (await bench.look())["projection_checkpoint"]] == [10]
    await bench.store.save(Changes(), [replace(first, next_offset=2, topic_id="t-2")])
    assert [row["next_offset"] for row in (await bench.look())["projection_checkpoint"]] == [2]


async def test_references_and_catalog_versions_are_kept(bench: Bench) -> None:
    row = CatalogRow(
        catalog_id=9,
        version=1,
        tenant_id="acme",
        organization_id="care",
        path="a/b",
        kind="playbook",
        content=None,
        content_ref=full_payload(),
        content_sha256="ab" * 32,
        created_at=AT,
        retired_at=None,
        last_seq=1,
    )
    changes = Changes()
    changes.add([row, replace(row, retired_at=AT, last_seq=2)])

    await bench.store.save(changes, ())

    (kept,) = (await bench.look())["catalog"]
    assert (kept["path"], kept["retired_at"], kept["last_seq"]) == ("a/b", AT, 2)


async def business_rows() -> tuple[BusinessBench, Changes]:
    """Project two executions in memory, and return all their business rows."""
    made = BusinessBench()
    rows = [{"facility": n, "patient": 1, "score": 0.1, "kind": "mds"} for n in (10, "a\0", 9)]
    events = await made.run(1000, rows, [{**rows[0], "patient": 2}])
    await made.project([events + await made.run(2000, rows[:1])])
    changes = Changes()
    changes.add([*states_in(made.store), *progress_in(made.store)])
    return made, changes


async def test_business_states_come_back_as_they_were_saved(bench: Bench) -> None:
    made, changes = await business_rows()
    await bench.store.save(changes, ())

    ids = [StateId(*one.key) for one in states_in(made.store)]  # type: ignore[arg-type]
    absent = ids[0]._replace(execution_id=7)
    found = await bench.business.states([*ids, absent])
    progress = await bench.business.progress([1000, 2000, 7])

    assert sorted(found, key=lambda one: one.key) == states_in(made.store)
    assert sorted(progress, key=lambda one: one.key) == progress_in(made.store)


async def test_an_older_business_state_does_not_replace_a_newer_one(bench: Bench) -> None:
    made, changes = await business_rows()
    await bench.store.save(changes, ())
    late = Changes()
    late.add([replace(one, last_seq=1, state="{}") for one in states_in(made.store)])
    late.add([replace(one, last_seq=1) for one in progress_in(made.store)])

    await bench.store.save(late, ())

    found = await bench.business.progress([1000, 2000])
    assert sorted(found, key=lambda one: one.key) == progress_in(made.store)
    ids = [StateId(*one.key) for one in states_in(made.store)]  # type: ignore[arg-type]
    assert "{}" not in {one.state for one in await bench.business.states(ids)}


async def test_business_states_are_paged_by_key_over_all_executions(bench: Bench) -> None:
    _, changes = await business_rows()
    await bench.store.save(changes, ())
    keys, after, executions = [], None, []
    while True:
        page = await bench.business.page(CARE, "patients", [1], wanted={}, after=after, limit=1)
        keys.append(page.states[0].key_values)
        executions.append([one.execution_id for one in page.states])
        if (after := page.next) is None:
            break

    assert keys == [["a\\0"], [9], [10]]
    assert executions == [[1000], [1000], [1000, 2000]]
    one = await bench.business.page(CARE, "patients", [1], wanted={0: "9"}, after=None, limit=5)
    assert [state.key_values for state in one.states] == [[9]]


async def test_the_projections_of_a_scope_are_listed(bench: Bench) -> None:
    _, changes = await business_rows()
    await bench.store.save(changes, ())

    frames, patients = await bench.business.projections(CARE)
    assert (frames.name, frames.executions, patients.name, patients.executions) == (
        *("frames", 2),
        *("patients", 2),
    )
    assert patients.declaration["key"] == ["facility"]
    assert await bench.business.projections(Scope("other", "care")) == []


@pytest.mark.stack
async def test_rows_and_checkpoint_are_saved_together_or_not_at_all(database: Settings) -> None:
    (execution,) = changes_of(await events_of()).of(ExecutionRow)
    bad = changes_of(await events_of()).of(StageRow)[0]
    assert isinstance(bad, StageRow)
    changes = Changes()
    changes.add([execution, replace(bad, kind="no such kind")])
    async with open_pool(dsn(database, "project")) as pool:
        store = PostgresProjections(pool)
        await store.clear()
        with pytest.raises(ProjectionsUnavailable, match="stage_kind_check"):
            await store.save(changes, ())
        assert await pool.fetchval("SELECT count(*) FROM noetl.execution") == 0
