"""What frames gave is read once per frame, live and on a rebuild alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streams.events.model import Event, NewEvent, PayloadRef
from streams.payload.arrow.rows import encode_rows
from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, JSON
from streams.projector.heads import ScannedRootHeads
from streams.projector.memory import MemoryProjections
from streams.projector.outputs import Outputs
from streams.projector.rebuild import rebuild
from streams.projector.rows import OutputRow
from tests.support.payload.tiers import ACME, Process
from tests.support.projector.executions import Story, memory_log, stored_events


@pytest.fixture
def payloads() -> MemoryPayloadStore:
    return MemoryPayloadStore()


@pytest.fixture
def worker(tmp_path: Path, payloads: MemoryPayloadStore) -> Process:
    return Process(tmp_path, payloads)


@pytest.fixture
def reader(tmp_path: Path, payloads: MemoryPayloadStore) -> Process:
    return Process(tmp_path, payloads)


async def output(worker: Process, count: int) -> PayloadRef:
    rows = encode_rows([{"id": n, "name": None} for n in range(count)])
    return await worker.payloads.put(
        ACME, rows.data, media_type=ARROW, row_count=count, schema_digest=rows.schema_digest
    )


async def frames(story: Story, *refs: PayloadRef | None) -> list[NewEvent]:
    events = [story.began(), story.entered(), story.loop_started(), story.opened()]
    for ordinal, ref in enumerate(refs):
        events += [story.dispatched(ordinal), story.claimed(ordinal)]
        events.append(replace(story.committed(ordinal), payload_ref=ref))
    return events


async def test_each_committed_frame_that_left_rows_is_read(
    worker: Process, reader: Process
) -> None:
    log, story = memory_log(), Story(1000)
    ref = await output(worker, 3)
    for event in await frames(story, ref, None):
        await log.append([event])

    (row,) = await Outputs(reader.payloads).rows(await stored_events(log, story.root))

    assert (row.frame_id, row.stage_id) == (story.frame_id(0), story.stage_id)
    assert (row.row_count, row.byte_count) == (3, ref.byte_length)
    assert (row.column_count, row.null_count) == (2, 3)
    assert (row.schema_digest, row.problem) == (ref.schema_digest, None)
    assert reader.counts.reads == {("1.5", False): 1}


async def test_a_lost_output_is_told_and_holds_up_nobody(worker: Process, reader: Process) -> None:
    log, story = memory_log(), Story(1000)
    lost, there = await output(worker, 3), await output(worker, 4)
    await worker.payloads.delete(lost)
    for event in await frames(story, lost, there):
        await log.append([event])

    first, second = await Outputs(reader.payloads).rows(await stored_events(log, story.root))

    assert (first.row_count, first.column_count) == (3, None)
    assert first.problem is not None
    assert "not in the store" in first.problem
    assert (second.row_count, second.problem) == (4, None)


async def test_a_huge_output_is_told_by_its_reference_alone(
    worker: Process, reader: Process
) -> None:
    log, story = memory_log(), Story(1000)
    ref = await output(worker, 3)
    for event in await frames(story, replace(ref, byte_length=1 << 40)):
        await log.append([event])

    (row,) = await Outputs(reader.payloads).rows(await stored_events(log, story.root))

    assert (row.row_count, row.byte_count, row.column_count) == (3, 1 << 40, None)
    assert row.problem is not None
    assert reader.served_by() == {}


async def test_a_store_that_is_down_is_waited_for(worker: Process) -> None:
    class Down:
        async def table(self, ref: PayloadRef) -> None:
            raise PayloadUnavailable("down")

    log, story = memory_log(), Story(1000)
    for event in await frames(story, await output(worker, 1)):
        await log.append([event])
    with pytest.raises(PayloadUnavailable):
        await Outputs(Down()).rows(await stored_events(log, story.root))


async def test_what_is_no_table_is_not_read(worker: Process, reader: Process) -> None:
    log, story = memory_log(), Story(1000)
    ref = await worker.payloads.put(ACME, b"{}", media_type=JSON)
    for event in await frames(story, ref):
        await log.append([event])
    assert await Outputs(reader.payloads).rows(await stored_events(log, story.root)) == []


async def test_a_rebuild_gives_the_same_rows_without_any_cache(
    tmp_path: Path, payloads: MemoryPayloadStore, worker: Process, reader: Process
) -> None:
    log, story = memory_log(), Story(1000)
    for event in await frames(story, await output(worker, 3), await output(worker, 4)):
        await log.append([event])
    events: list[Event] = await stored_events(log, story.root)
    live = await Outputs(reader.payloads).rows(events)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    store = MemoryProjections()

    outputs = Outputs(Process(elsewhere, payloads).payloads)
    await rebuild(ScannedRootHeads(log), log, store, outputs)

    assert store.of(OutputRow) == live
