"""One suite for every stored log: in memory, in Postgres, and in the file of a bundle."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from streams.app import open_log, open_pool
from streams.clock import SystemClock
from streams.events.codec import Codec
from streams.events.model import Event, Root
from streams.payload.port import Scope
from streams.projector.core import View, checksums
from streams.projector.postgres import PostgresProjections
from streams.projector.rows import Changes, SnapshotRow
from streams.projector.snapshots import snapshot_of
from streams.replay.bundle.file import open_bundle
from streams.replay.bundle.log import BundleLog
from streams.replay.port import StoredLog
from streams.replay.postgres import PostgresStoredLog
from streams.replay.state import Replay, folded
from streams.replay.verified import VerifiedLog
from streams.settings import Settings
from tests.support.events.examples import codec
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story, stored_events
from tests.support.replay.benches import ReplayBench
from tests.support.retention.archived import archived_log, written

ID = 1000
SCOPE = Scope("acme", "care")


@dataclass
class Stored:
    """A stored log, and the events of the only execution that a test asks it for."""

    log: StoredLog
    codec: Codec
    events: Sequence[Event]
    save: Callable[[SnapshotRow], Awaitable[None]] | None = None

    @property
    def root(self) -> Root:
        return self.events[0].root


@pytest.fixture(
    params=["memory", pytest.param("postgres", marks=pytest.mark.stack), "bundle", "archive"]
)
def where(request: pytest.FixtureRequest) -> Settings | str:
    """Return a database of the module's own, or another adapter's name."""
    if request.param != "postgres":
        return str(request.param)
    settings: Settings = request.getfixturevalue("database")
    return settings


@pytest.fixture
async def stored(where: Settings | str, tmp_path: Path) -> AsyncIterator[Stored]:
    if isinstance(where, Settings):
        async with _in_postgres(where) as found:
            yield found
        return
    bench = ReplayBench()
    events = await bench.append(Story(ID).whole())
    if where in ("memory", "archive"):

        async def save(row: SnapshotRow) -> None:
            bench.stored.snapshots.append(row)

        log = bench.stored if where == "memory" else archived_log(bench, await written(bench, ID))
        yield Stored(log, codec(), events, save)
        return
    await bench.export(ID, tmp_path / "bundle")
    with open_bundle(tmp_path / "bundle") as bundle:
        yield Stored(BundleLog(bundle, bundle.codec()), bundle.codec(), events)


@asynccontextmanager
async def _in_postgres(settings: Settings) -> AsyncIterator[Stored]:
    async with (
        open_log(settings, role="test") as log,
        open_pool(dsn(settings, "read")) as reading,
        open_pool(dsn(settings, "project")) as projecting,
    ):
        story = Story(log.ids.next())
        for event in story.whole():
            await log.store.append([event])

        async def save(row: SnapshotRow) -> None:
            changes = Changes()
            changes.add([row])
            await PostgresProjections(projecting).save(changes, ())

        events = await stored_events(log.store, story.root)
        yield Stored(PostgresStoredLog(reading), log.codec, events, save)


async def test_the_head_is_the_last_event(stored: Stored) -> None:
    head = await stored.log.head(stored.root)
    assert head is not None
    assert (head.scope, head.seq) == (SCOPE, 19)
    assert head.chain.hex() == stored.events[-1].chain


async def test_an_unknown_root_has_no_head(stored: Stored) -> None:
    assert await stored.log.head(Root("execution", 7)) is None
    assert await stored.log.head(Root("catalog", stored.root.id)) is None


async def test_a_page_is_bounded_on_both_sides_and_by_its_limit(stored: Stored) -> None:
    async def seqs(after: int, through: int, limit: int) -> list[int]:
        page = await stored.log.page(stored.root, after_seq=after, through_seq=through, limit=limit)
        return [one.seq for one in page]

    assert await seqs(0, 19, 100) == list(range(1, 20))
    assert await seqs(4, 9, 100) == [5, 6, 7, 8, 9]
    assert await seqs(4, 9, 2) == [5, 6]
    assert await seqs(18, 100, 100) == [19]
    assert await seqs(19, 100, 100) == []


async def test_events_are_as_they_were_appended(stored: Stored) -> None:
    page = await stored.log.page(stored.root, after_seq=0, through_seq=19, limit=100)
    for one, event in zip(page, stored.events, strict=True):
        assert one.checksum.hex() == event.checksum
        assert one.chain.hex() == event.chain
        assert (one.position, one.stream_version) == (event.position, event.stream_version)
        assert one.ingest_time == event.ingest_time.replace(tzinfo=None)
        assert stored.codec.record(one.envelope)["event_id"] == event.event_id


async def test_an_event_is_found_by_its_id(stored: Stored) -> None:
    for event in (stored.events[0], stored.events[7], stored.events[-1]):
        assert await stored.log.seq_of_event(stored.root, event.event_id) == event.seq
    assert await stored.log.seq_of_event(stored.root, 1) is None


async def test_a_time_and_a_position_stand_for_the_last_event_until_then(stored: Stored) -> None:
    for event in (stored.events[0], stored.events[7], stored.events[-1]):
        last = max(one.seq for one in stored.events if one.ingest_time <= event.ingest_time)
        assert await stored.log.seq_at_time(stored.root, event.ingest_time) == last
        assert await stored.log.seq_at_position(stored.root, event.position) == event.seq
    first, last_event = stored.events[0], stored.events[-1]
    day = timedelta(days=1)
    assert await stored.log.seq_at_time(stored.root, first.ingest_time - day) == 0
    assert await stored.log.seq_at_time(stored.root, last_event.ingest_time + day) == 19
    assert await stored.log.seq_at_position(stored.root, first.position - 1) == 0


async def test_its_replay_gives_the_live_state(stored: Stored) -> None:
    verified = VerifiedLog(stored.log, stored.codec)
    state = await Replay(stored.log, verified, SystemClock()).state(stored.root.id, SCOPE)
    assert state.checksums == checksums(folded(View(), stored.events))
    assert (state.events_read, state.snapshot) == (19, None)


async def test_the_newest_snapshot_at_or_below_a_place_is_found(stored: Stored) -> None:
    assert await stored.log.snapshot(stored.root, 19) is None
    if stored.save is None:
        return  # a bundle has no snapshots
    for seq in (5, 10):
        view = folded(View(), stored.events[:seq])
        await stored.save(snapshot_of(view, stored.events[seq - 1]))
    found = [await stored.log.snapshot(stored.root, seq) for seq in (4, 5, 9, 10, 19)]
    assert [None if one is None else one.seq for one in found] == [None, 5, 5, 10, 10]
