"""Archives in memory: what they contain, and what is reported of damaged ones."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import orjson
import pytest

from streams.clock import SystemClock
from streams.payload.content import key_of
from streams.replay.errors import TamperedLog
from streams.replay.port import LogSource
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.retention.errors import DamagedArchive, NotArchivable
from streams.retention.event_store import ArchivedEventStore
from streams.retention.port import PayloadNames
from streams.retention.run import WrittenIndex, verify
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log
from tests.support.replay.benches import SCOPE, ReplayBench, root_of
from tests.support.retention.archived import archived_log, written

FIRST, SECOND = 7000, 8000


@pytest.fixture
async def bench() -> ReplayBench:
    bench = ReplayBench()
    for one in (FIRST, SECOND):
        await bench.append(Story(one).whole())
    return bench


async def test_executions_share_segments_and_replay_from_them(bench: ReplayBench) -> None:
    archive = await written(bench, FIRST, SECOND, segment_bytes=5000)
    first, second = archive.roots
    shared = {one.segment for one in first.pieces} & {one.segment for one in second.pieces}
    assert (len(shared), len(first.pieces) > 1) == (1, True)
    log = archived_log(bench, archive)
    replay = Replay(log, VerifiedLog(log, codec()), SystemClock())
    for one in (FIRST, SECOND):
        found, live = await replay.state(one, SCOPE), await bench.replay.state(one, SCOPE)
        assert (found.source, live.source) == (LogSource.ARCHIVE, LogSource.LOG)
        assert replace(found, source=LogSource.LOG) == live


async def test_the_same_executions_give_the_same_objects(bench: ReplayBench) -> None:
    first = await written(bench, FIRST, SECOND)
    stored = dict(bench.payloads.objects)
    assert await written(bench, FIRST, SECOND) == first
    assert bench.payloads.objects == stored


async def test_the_manifest_lists_every_event_and_payload(bench: ReplayBench) -> None:
    ref = await bench.put(b"rows")
    names = PayloadNames(frozenset([ref.sha256, "a" * 64]), frozenset([ref.sha256]))
    archive = await written(bench, FIRST, names={FIRST: names})
    manifest = orjson.loads(await bench.payloads.get(archive.manifest))
    (execution,) = manifest["executions"]
    assert (execution["execution_id"], execution["seq"]) == (str(FIRST), 19)
    assert execution["payloads"] == [ref.uri, f"sha256 {'a' * 64}"]
    segments = [one["sha256"] for one in manifest["segments"]]
    assert segments == [one["segment"] for one in execution["pieces"]]


async def test_an_execution_without_its_payload_is_refused(bench: ReplayBench) -> None:
    lost = frozenset(["b" * 64])
    with pytest.raises(NotArchivable, match=f"execution {FIRST}: its payload .*{'b' * 64}"):
        await written(bench, FIRST, names={FIRST: PayloadNames(lost, lost)})


async def test_a_tampered_event_is_not_archived(bench: ReplayBench) -> None:
    events = bench.stored.stored[root_of(FIRST)]
    events[4] = events[4]._replace(checksum=bytes(32))
    with pytest.raises(TamperedLog, match="seq 5"):
        await written(bench, FIRST)


async def test_a_changed_object_is_named(bench: ReplayBench) -> None:
    archive = await written(bench, FIRST)
    await verify(bench.payloads, codec(), archive.roots)
    damaged = archive.segments[1]
    data = bench.payloads.objects[key_of(damaged)]
    bench.payloads.objects[key_of(damaged)] = data[:-9] + b"?" + data[-8:]
    with pytest.raises(DamagedArchive, match=f"{damaged.uri}: it was changed"):
        await verify(bench.payloads, codec(), archive.roots)
    del bench.payloads.objects[key_of(damaged)]
    with pytest.raises(DamagedArchive, match=f"{damaged.uri}: it is missing"):
        await verify(bench.payloads, codec(), archive.roots)


async def test_an_archive_that_ends_early_is_not_verified(bench: ReplayBench) -> None:
    (root,) = (await written(bench, FIRST)).roots
    with pytest.raises((DamagedArchive, TamperedLog)):
        await verify(bench.payloads, codec(), [replace(root, chain=bytes(32))])
    with pytest.raises((DamagedArchive, TamperedLog)):
        await verify(bench.payloads, codec(), [replace(root, pieces=root.pieces[:-1])])


async def test_decoded_events_come_from_the_log_or_else_the_archive(bench: ReplayBench) -> None:
    archive = await written(bench, FIRST)

    index = WrittenIndex({FIRST: archive.roots[0]})
    stores = [
        ArchivedEventStore(log, index, lambda: nullcontext(bench.payloads), codec())
        for log in (bench.log, memory_log())
    ]
    root, stream = root_of(FIRST), f"execution/{FIRST}"
    for rest in ({}, {"after_seq": 4, "through_seq": 9}):
        live, read = [[one async for one in log.read_root(root, **rest)] for log in stores]
        assert (len(live) > 0, read) == (True, live)
    live, read = [[one async for one in log.read_stream(root, stream)] for log in stores]
    assert (len(live) > 0, read) == (True, live)
    assert [one async for one in stores[1].read_root(root_of(SECOND))] == []
