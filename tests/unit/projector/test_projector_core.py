"""Events in, rows out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from streams.events.model import Event, NewEvent, Root
from streams.execution.evolve import Gap
from streams.projector.core import View, absorb
from streams.projector.memory import MemoryProjections
from streams.projector.resources import Resource, absorb_resource
from streams.projector.rows import (
    CatalogRow,
    Changes,
    CommandRow,
    ExecutionRow,
    FrameRow,
    Row,
    StageRow,
)
from tests.support.projector.executions import AT, Story, memory_log, stored_events
from tests.support.projector.rows import rows_after

ID = 1000


async def events_of(*events: NewEvent) -> list[Event]:
    log = memory_log()
    for event in events:
        await log.append([event])
    return await stored_events(log, events[0].root)


def fold(events: list[Event], view: View | None = None) -> tuple[View, Changes]:
    view, changes = view or View(), Changes()
    for event in events:
        view, rows = rows_after(view, event)
        changes.add(rows)
    return view, changes


async def seen(*events: NewEvent) -> Changes:
    return fold(await events_of(*events))[1]


def only(changes: Changes, kind: type[Row]) -> Row:
    (row,) = changes.of(kind)
    return row


async def test_a_whole_execution_becomes_its_rows() -> None:
    changes = await seen(*Story(ID).whole())

    execution = only(changes, ExecutionRow)
    assert isinstance(execution, ExecutionRow)
    assert (execution.status, execution.path, execution.catalog_id) == (
        "COMPLETED",
        "examples/load",
        9,
    )
    assert execution.result == {"n": 1}
    assert execution.last_event_type == "playbook.completed"
    assert execution.last_node_name == "tell"
    assert execution.end_time is not None
    assert execution.last_seq == 19
    stage = only(changes, StageRow)
    assert isinstance(stage, StageRow)
    assert (stage.status, stage.frames, stage.frames_done) == ("CLOSED", 2, 2)
    assert (stage.rows_done, stage.rows_failed, stage.total_rows) == (10, 0, 10)
    assert (stage.parent_event_id, stage.frame_policy) == (77, {"size": 5})
    frames = changes.of(FrameRow)
    assert [(row.status, row.attempts, row.events_emitted) for row in frames] == [
        ("COMMITTED", 1, 3),
        ("COMMITTED", 2, 6),
    ]
    command = only(changes, CommandRow)
    assert isinstance(command, CommandRow)
    assert (command.status, command.events_emitted, command.tool) == ("COMPLETED", 3, "noop")


async def test_the_state_counts_a_loop_by_the_rows_of_its_frames() -> None:
    story = Story(ID)
    begun = [story.began(), story.entered(), story.loop_started(), story.opened()]
    frames = [story.dispatched(0), story.claimed(0), story.committed(0, failed=2)]

    row = only(await seen(*begun, *frames), ExecutionRow)

    assert isinstance(row, ExecutionRow)
    assert row.state == {
        "loop": {
            "load": {
                "loop_id": str(story.loop_id),
                "total": 10,
                "done": 3,
                "failed": 2,
                "collection_ref": None,
                "mode": "parallel",
                "completed": False,
            }
        }
    }


async def test_a_claimed_frame_shows_its_owner_and_the_end_of_its_lease() -> None:
    story = Story(ID)
    events = await events_of(story.began(), story.opened(), story.dispatched(0), story.claimed(0))

    row = only(fold(events)[1], FrameRow)

    assert isinstance(row, FrameRow)
    assert (row.status, row.owner_worker) == ("CLAIMED", "w-1")
    assert row.lease_until == events[-1].ingest_time + timedelta(seconds=60)
    assert row.cursor == {"kind": "list", "from": 0, "to": 5}
    assert row.completed_at is None


async def test_an_event_seen_before_changes_nothing() -> None:
    events = await events_of(*Story(ID).whole())
    view, _ = fold(events)

    again, changes = fold(events, view)

    assert again == view
    assert len(changes) == 0


async def test_an_event_that_is_not_the_next_one_is_refused() -> None:
    events = await events_of(*Story(ID).whole())
    view, _ = fold(events[:3])
    with pytest.raises(Gap):
        absorb(view, events[4])


async def test_what_was_open_when_the_execution_was_cancelled_is_cancelled_too() -> None:
    story = Story(ID)
    begun = [story.began(), story.opened(), story.dispatched(0), story.claimed(0), story.issued()]
    end = story.ended("execution.cancelled", status="CANCELLED", meta={"by": "ana"})

    changes = await seen(*begun, end)

    kinds = (ExecutionRow, StageRow, FrameRow, CommandRow)
    assert [only(changes, kind).status for kind in kinds] == ["CANCELLED"] * 4
    frame = only(changes, FrameRow)
    assert isinstance(frame, FrameRow)
    assert frame.completed_at is not None


async def test_a_view_holds_no_frame_that_has_ended() -> None:
    events = await events_of(*Story(ID).whole()[:14])
    view, _ = fold(events)
    assert view.plan is not None
    assert [len(stage.frames) for stage in view.plan.stages.values()] == [0]


async def test_a_suspended_execution_says_so_until_it_is_resumed() -> None:
    story = Story(ID)
    begun = story.began()
    stop = story.event("execution.suspended", meta={"by": "ana", "reason": "look first"})
    on = story.event("execution.resumed", meta={"by": "ana"})

    assert only(await seen(begun, stop), ExecutionRow).status == "SUSPENDED"
    assert only(await seen(begun, stop, on), ExecutionRow).status == "RUNNING"


async def test_a_newer_row_in_the_table_stays() -> None:
    events = await events_of(*Story(ID).whole())
    _, old = fold(events[:5])
    _, new = fold(events)
    store = MemoryProjections()

    await store.save(new, ())
    await store.save(old, ())

    assert only_status(store) == "COMPLETED"


def only_status(store: MemoryProjections) -> str:
    (row,) = store.of(ExecutionRow)
    assert isinstance(row, ExecutionRow)
    return row.status


async def test_a_catalog_entry_shows_each_version_and_its_retirement() -> None:
    root = Root("catalog", 9)
    first = NewEvent(
        type="catalog.registered",
        root=root,
        tenant_id="acme",
        organization_id="care",
        idempotency_key="v1",
        event_time=AT,
        meta={"path": "a/b", "version": 1, "kind": "playbook", "content_sha256": "ab" * 32},
        context={"content": "kind: Playbook"},
    )
    second = replace(first, idempotency_key="v2", meta={**first.meta, "version": 2})
    retired = replace(
        first,
        type="catalog.retired",
        idempotency_key="r1",
        context=None,
        meta={"path": "a/b", "version": 1},
    )
    resource, changes = Resource(), Changes()
    for event in await events_of(first, second, retired):
        resource, rows = absorb_resource(resource, event)
        changes.add(rows)

    rows = changes.of(CatalogRow)
    assert [(row.version, row.content, row.retired_at is None) for row in rows] == [
        (1, "kind: Playbook", False),
        (2, "kind: Playbook", True),
    ]
