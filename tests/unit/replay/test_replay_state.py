"""The state of an execution at any moment: as the live fold had it, or a clear refusal."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from streams.clock import SystemClock
from streams.events.canonical import canonical_fields, checksum
from streams.events.model import Event, NewEvent, Root
from streams.log.memory import MemoryEventStore
from streams.payload.port import Scope
from streams.projector.core import View, absorb, checksums
from streams.projector.memory import MemoryProjections
from streams.projector.rows import ExecutionRow
from streams.projector.views import Views, by_root
from streams.replay.cutoff import Cutoff, KafkaOffset, time_of
from streams.replay.errors import BadCutoff, NoSuchExecution, TamperedLog, UnknownProjection
from streams.replay.memory import MemoryStoredLog
from streams.replay.state import Replay, known_projection
from streams.replay.state_json import state_json
from streams.replay.verified import VerifiedLog
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log, stored_events

ID = 1000
ROOT = Root("execution", ID)


class Bench:
    """A log in memory, and replay of it."""

    def __init__(self) -> None:
        self.stored = MemoryStoredLog()
        self.log: MemoryEventStore = memory_log(self.stored.mirror)
        self.replay = Replay(self.stored, VerifiedLog(self.stored, codec()), SystemClock())

    async def append(self, *events: NewEvent) -> list[Event]:
        for event in events:
            await self.log.append([event])
        found = await stored_events(self.log, ROOT)
        self.scope = Scope(found[0].tenant_id, found[0].organization_id)
        return found


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    return Bench()


async def test_every_moment_has_the_checksum_of_the_live_fold(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    view = View()
    for event in events:
        view, _ = absorb(view, event)
        for cutoff in (Cutoff(seq=event.seq), Cutoff(event_id=event.event_id)):
            state = await bench.replay.state(ID, bench.scope, cutoff)
            assert state.checksums == checksums(view)
            assert (state.as_of.seq, state.as_of.chain) == (event.seq, event.chain)
            assert state.execution == view.row
    newest = await bench.replay.state(ID, bench.scope)
    assert newest.as_of.seq == len(events)


async def test_no_two_moments_have_the_same_checksum(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    states = [await bench.replay.state(ID, bench.scope, Cutoff(seq=e.seq)) for e in events]
    assert len({state.checksum_of("all") for state in states}) == len(events)


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
async def test_rows_of_any_batches_have_the_replayed_checksum(bench: Bench, batch: int) -> None:
    events = await bench.append(*Story(ID).whole())
    views, store = Views(bench.log), MemoryProjections()
    for begin in range(0, len(events), batch):
        folded = await views.fold(by_root(events[begin : begin + batch]))
        await store.save(folded.changes, ())
        views.remember(folded)
        (row,) = store.of(ExecutionRow)
        assert isinstance(row, ExecutionRow)
        state = await bench.replay.state(ID, bench.scope, Cutoff(seq=row.last_seq))
        assert row.state_checksum == state.checksum_of("all")


async def test_a_time_stands_for_the_last_event_stored_by_then(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    at = events[3].ingest_time
    last = max(event.seq for event in events if event.ingest_time <= at)
    state = await bench.replay.state(ID, bench.scope, Cutoff(time=at))
    assert state.as_of.seq == last


async def test_moments_that_an_execution_does_not_have_are_refused(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    for cutoff, what in (
        (Cutoff(seq=len(events) + 1), f"has the places 1 to {len(events)}, not"),
        (Cutoff(event_id=1), "has no event 1"),
        (Cutoff(time=events[0].ingest_time - timedelta(seconds=1)), "its first event is later"),
        (Cutoff(time=SystemClock().now() + timedelta(hours=1)), "is in the future"),
        (Cutoff(offset=KafkaOffset("noetl.events.execution", 0, 1)), "cannot read Kafka"),
    ):
        with pytest.raises(BadCutoff, match=what):
            await bench.replay.state(ID, bench.scope, cutoff)


async def test_another_tenant_or_an_unknown_execution_is_not_found(bench: Bench) -> None:
    await bench.append(*Story(ID).whole())
    with pytest.raises(NoSuchExecution, match="tenant other"):
        await bench.replay.state(ID, Scope("other", bench.scope.organization_id))
    with pytest.raises(NoSuchExecution, match="execution 7"):
        await bench.replay.state(7, bench.scope)


def test_two_moments_at_once_are_refused() -> None:
    with pytest.raises(BadCutoff, match="event_id and seq are given"):
        Cutoff(event_id=1, seq=1)


@pytest.mark.parametrize("text", ["", "topic", "topic:1", "topic:x:1", "topic:1:-1", "a b:1:1"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(BadCutoff, match="TOPIC:PARTITION:OFFSET"):
        KafkaOffset.parse(text)


def test_a_time_without_a_zone_is_utc() -> None:
    assert time_of("2026-11-18T12:00:00") == time_of("2026-11-18T12:00:00Z")
    with pytest.raises(BadCutoff, match="is not a time"):
        time_of("yesterday")


def test_an_unknown_projection_is_refused() -> None:
    with pytest.raises(UnknownProjection, match="use one of execution, loop"):
        known_projection("patients")


async def test_a_changed_event_is_reported_at_its_place_and_not_folded(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    stored = bench.stored.stored[ROOT]
    whole = list(stored)
    place = 4
    at = f"execution/{ID} seq {place}"
    other = codec().encode({**codec().record(whole[place - 1].envelope), "node_name": "forged"})
    for changed, what in (
        (whole[place - 1]._replace(envelope=other), "does not match its checksum"),
        (whole[place - 1]._replace(envelope=b"\0\0"), "no Confluent wire format"),
        (whole[place - 1]._replace(checksum=bytes(32)), "does not match its checksum"),
        (whole[place - 1]._replace(chain=bytes(32)), "its chain does not follow"),
    ):
        stored[:] = [*whole[: place - 1], changed, *whole[place:]]
        with pytest.raises(TamperedLog, match=what) as raised:
            await bench.replay.state(ID, bench.scope)
        assert raised.value.seq == place
        assert at in str(raised.value)
        before = await bench.replay.state(ID, bench.scope, Cutoff(seq=place - 1))
        assert before.as_of.seq == place - 1
    stored[:] = [*whole[: place - 1], *whole[place:]]
    with pytest.raises(TamperedLog, match=f"{at}: the event is missing"):
        await bench.replay.state(ID, bench.scope)
    stored[:] = whole[:-1]
    with pytest.raises(TamperedLog, match=f"seq {len(events)}: the event is missing"):
        await bench.replay.state(ID, bench.scope)


async def test_an_event_replaced_with_its_checksum_and_chain_breaks_the_next_link(
    bench: Bench,
) -> None:
    await bench.append(*Story(ID).whole())
    stored = bench.stored.stored[ROOT]
    record = dict(codec().record(stored[3].envelope))
    record["node_name"] = "forged"
    record["checksum"] = checksum(canonical_fields(record))
    sealed = bytes.fromhex(record["checksum"])
    stored[3] = stored[3]._replace(
        envelope=codec().encode(record),
        checksum=sealed,
        chain=hashlib.sha256(stored[2].chain + sealed).digest(),
    )
    with pytest.raises(TamperedLog, match="seq 5, position 5: its chain does not follow"):
        await bench.replay.state(ID, bench.scope)


async def test_a_state_as_json_has_its_moment_its_rows_and_its_checksum(bench: Bench) -> None:
    story = Story(ID)
    await bench.append(story.began(), story.opened(), story.dispatched(0), story.claimed(0))
    state = await bench.replay.state(ID, bench.scope)

    whole = state_json(state, "all")
    frames = state_json(state, "frame")

    assert whole["checksum"] == state.checksums["all"]
    assert frames["checksums"] == {"frame": state.checksums["frame"]}
    parts = frames["state"]
    assert isinstance(parts, dict)
    assert list(parts) == ["frames"]
    (frame,) = parts["frames"]["open"]
    assert (frame["status"], frame["execution_id"]) == ("CLAIMED", str(ID))
    assert parts["frames"]["ended"]["count"] == 0


async def test_a_field_that_differs_gives_another_checksum(bench: Bench) -> None:
    view = View()
    for event in await bench.append(*Story(ID).whole()):
        view, _ = absorb(view, event)
    assert view.plan is not None
    other = view._replace(plan=replace(view.plan, error="forged"))
    assert checksums(other)["execution"] != checksums(view)["execution"]
    assert checksums(other)["frame"] == checksums(view)["frame"]
    assert checksums(other)["all"] != checksums(view)["all"]
