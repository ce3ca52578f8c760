"""What every event store promises its readers: a root, a stream, the whole log."""

from __future__ import annotations

import asyncio

from streams.events.model import Event, NewEvent, Root
from streams.log.port import EventStore, Frontier
from tests.support.events.stores import Subject
from tests.support.log.databases import end_of, event, root_events

TIMEOUT_S = 90


async def test_a_root_is_read_after_one_place_and_through_another(
    store: EventStore, root: int
) -> None:
    await store.append([event(root) for _ in range(6)])
    assert _seqs(await root_events(store, root, after_seq=2)) == [3, 4, 5, 6]
    assert _seqs(await root_events(store, root, through_seq=2)) == [1, 2]
    assert _seqs(await root_events(store, root, after_seq=1, through_seq=4)) == [2, 3, 4]
    assert _seqs(await root_events(store, root, after_seq=6)) == []


async def test_a_root_nobody_wrote_to_is_empty(store: EventStore, root: int) -> None:
    assert await root_events(store, root) == []


async def test_a_root_is_not_found_under_another_type(store: EventStore, root: int) -> None:
    await store.append([event(root)])
    assert [one async for one in store.read_root(Root("tenant", root))] == []


async def test_a_root_longer_than_a_page_is_read_whole(store: EventStore, root: int) -> None:
    for _ in range(5):
        await store.append([event(root) for _ in range(450)])
    assert _seqs(await root_events(store, root)) == list(range(1, 2251))


async def test_a_stream_is_read_alone_and_after_a_version(store: EventStore, root: int) -> None:
    names = ("load", "save", "load", "save", "load")
    await store.append([event(root, node_name=name) for name in names])
    stream = f"execution/{root}/step/load"
    found = [one async for one in store.read_stream(Root("execution", root), stream)]
    assert [(one.stream_version, one.seq) for one in found] == [(1, 1), (2, 3), (3, 5)]
    rest = store.read_stream(Root("execution", root), stream, after_version=2)
    assert [one.seq async for one in rest] == [5]


async def test_the_whole_log_is_read_from_cut_to_cut(subject: Subject) -> None:
    store, start = subject.store, await _end_after(subject.store, subject.next_id())
    roots = [subject.next_id() for _ in range(3)]
    for _ in range(4):
        for root_id in roots:
            await store.append([event(root_id), event(root_id)])
    await _until_seen(store, start, 24)
    pages, frontier = [], start
    while True:
        page, reached = await store.read_log(frontier, limit=5)
        if not page:
            assert reached == frontier
            break
        assert reached > frontier
        pages.append(page)
        frontier = reached
    found = [one for page in pages for one in page]
    assert [len(page) for page in pages] == [5, 5, 5, 5, 4]
    for root_id in roots:
        assert _seqs([one for one in found if one.root.id == root_id]) == list(range(1, 9))


async def _end_after(store: EventStore, root_id: int) -> Frontier:
    """Append an event; return the frontier behind it, where the log ends."""
    start = await end_of(store)
    await store.append([event(root_id)])
    async with asyncio.timeout(TIMEOUT_S):
        async for one, frontier in store.follow(start):
            if one.root.id == root_id:
                return frontier
    raise AssertionError("a follower goes on until it is closed")


async def _until_seen(store: EventStore, start: Frontier, count: int) -> None:
    """Wait until readers get so many events: transactions of strangers hold all of them up."""
    async with asyncio.timeout(TIMEOUT_S):
        while len((await store.read_log(start, limit=count))[0]) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_follower_gets_what_is_there_and_what_comes(subject: Subject) -> None:
    store, root_id = subject.store, subject.next_id()
    start = await end_of(store)
    await store.append([event(root_id), event(root_id)])
    follower = store.follow(start)
    seen = [await anext(follower), await anext(follower)]
    waiting = asyncio.ensure_future(anext(follower))
    await store.append([event(root_id)])
    seen.append(await asyncio.wait_for(waiting, TIMEOUT_S))
    assert _seqs([one for one, _ in seen]) == [1, 2, 3]
    again = store.follow(seen[0][1])
    assert (await anext(again))[0].seq == 2
    for generator in (follower, again):
        await generator.aclose()  # type: ignore[attr-defined]


async def test_concurrent_appends_to_one_root_leave_no_gap(store: EventStore, root: int) -> None:
    receipts = await asyncio.gather(*[store.append(_batch(root, at)) for at in range(60)])
    assert sorted(one.seq for receipt in receipts for one in receipt.events) == _seqs(
        await root_events(store, root)
    )
    for receipt in receipts:
        seqs = [one.seq for one in receipt.events]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def _batch(root_id: int, at: int) -> list[NewEvent]:
    return [event(root_id, node_name=f"step-{at % 5}") for _ in range(at % 3 + 1)]


def _seqs(events: list[Event]) -> list[int]:
    return [one.seq for one in events]


async def test_there_is_nothing_after_the_end(subject: Subject) -> None:
    end = await _end_after(subject.store, subject.next_id())
    events, reached = await subject.store.read_log(end)
    assert (list(events), reached) == ([], end)
    assert Frontier() < end
