"""Snapshots: a replay from one equals a replay from the first event, or it is ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streams.events.catalogue import catalogue
from streams.events.model import Event
from streams.events.upcast import upcast
from streams.projector.core import View, absorb, checksums
from streams.projector.memory import MemoryProjections
from streams.projector.rows import SnapshotRow
from streams.projector.snapshots import UnusableSnapshot, snapshot_of, view_of
from streams.projector.views import Views, by_root
from streams.replay.cutoff import Cutoff
from tests.histories.replay import NAMES, recorded
from tests.support.projector.executions import Story
from tests.unit.replay.test_replay_state import ID, Bench


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def _snapshots(bench: Bench, events: list[Event], interval: int) -> list[SnapshotRow]:
    store = MemoryProjections()
    folded = await Views(bench.log, snapshot_interval=interval).fold(by_root(events))
    await store.save(folded.changes, ())
    return [row for row in store.of(SnapshotRow) if isinstance(row, SnapshotRow)]


@pytest.mark.parametrize("interval", [1, 3, 5])
async def test_a_replay_from_a_snapshot_equals_one_from_the_first_event(
    bench: Bench, interval: int
) -> None:
    events = await bench.append(*Story(ID).whole())
    whole = [await bench.replay.state(ID, bench.scope, Cutoff(seq=one.seq)) for one in events]
    bench.stored.snapshots = await _snapshots(bench, events, interval)
    assert [one.seq for one in bench.stored.snapshots] == list(
        range(interval, len(events) + 1, interval)
    )
    for event, expected in zip(events, whole, strict=True):
        state = await bench.replay.state(ID, bench.scope, Cutoff(seq=event.seq))
        assert state.checksums == expected.checksums
        assert (state.as_of, state.execution) == (expected.as_of, expected.execution)
        assert (state.payloads, state.still_open) == (expected.payloads, expected.still_open)
        used = event.seq // interval * interval
        assert state.events_read == event.seq - used
        assert (state.snapshot and state.snapshot.seq) == (used or None)


async def test_a_snapshot_on_demand_is_folded_without_the_others(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    (forged,) = await _snapshots(bench, events[:4], 4)
    bench.stored.snapshots = [replace(forged, checksum="0" * 64)]
    row = await bench.replay.snapshot(ID, bench.scope, Cutoff(seq=6))
    state = await bench.replay.state(ID, bench.scope, Cutoff(seq=6), use_snapshots=False)
    assert (row.seq, row.checksum) == (6, state.checksum_of("all"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"code_digest": "0"}, "other code made it"),
        ({"projection_version": 0}, "it is of version 0 of the projection"),
        ({"upcaster_versions": {"x 1 to 2": "0"}}, "it was made with other upcasters"),
        ({"state": "{}"}, "its state does not match its checksum"),
        ({"state": "[1"}, "its state cannot be read"),
        ({"checksum": "0"}, "its state does not match its checksum"),
        ({"payload_root": "0"}, "its payloads do not match their digest"),
        ({"chain": "00" * 32}, "its chain is not the log's"),
    ],
)
async def test_a_snapshot_that_does_not_fit_is_ignored_and_the_reason_reported(
    bench: Bench, changed: dict[str, object], why: str
) -> None:
    events = await bench.append(*Story(ID).whole())
    (snapshot,) = await _snapshots(bench, events[:4], 4)
    expected = await bench.replay.state(ID, bench.scope)
    bench.stored.snapshots = [replace(snapshot, **changed)]  # type: ignore[arg-type]
    state = await bench.replay.state(ID, bench.scope)
    assert state.checksums == expected.checksums
    assert state.events_read == len(events)
    assert state.snapshot is not None
    assert (state.snapshot.seq, state.snapshot.ignored) == (4, why)


async def test_a_forged_state_is_found_by_its_checksum(bench: Bench) -> None:
    events = await bench.append(*Story(ID).whole())
    (snapshot,) = await _snapshots(bench, events[:4], 4)
    forged = snapshot.state.replace(Story(ID).whole()[0].tenant_id, "forged")
    assert forged != snapshot.state
    with pytest.raises(UnusableSnapshot, match="does not match its checksum"):
        view_of(replace(snapshot, state=forged))


@pytest.mark.parametrize("name", NAMES)
def test_the_fold_goes_on_from_a_snapshot_of_every_recorded_state(name: str) -> None:
    views: dict[int, View] = {}
    again: dict[int, View] = {}
    for number, one in enumerate(recorded(name)):
        event = upcast(one.event, catalogue())
        root = event.root.id
        views[root], _ = absorb(views.get(root, View()), event)
        again[root], _ = absorb(again.get(root, View()), event)
        if number % 3 == 0:
            again[root] = view_of(snapshot_of(again[root], event))
        assert again[root].plan == views[root].plan
        assert checksums(again[root]) == checksums(views[root])
