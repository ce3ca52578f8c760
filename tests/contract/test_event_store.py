"""What every event store promises, in memory and in Postgres alike."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from streams.app import open_log
from streams.clock import SystemClock
from streams.envelope.errors import BadEvent, MissingField
from streams.envelope.model import Event, NewEvent, Root
from streams.errors import Refused
from streams.ids import FixedWorkerId, Snowflakes, derive_root_id
from streams.log.errors import (
    BadBatch,
    ForeignRoot,
    IdempotencyConflict,
    RootEnded,
    VersionConflict,
)
from streams.log.memory import MemoryEventStore
from streams.log.port import EventStore, Frontier, Outcome
from streams.log.scratch import scratch_database
from streams.settings import Settings
from tests.events import PRODUCER, codec
from tests.logs import end_of, event, root_events


@dataclass(frozen=True, slots=True)
class Subject:
    """A store, and ids that nobody else uses in it."""

    store: EventStore
    next_id: Callable[[], int]


@pytest.fixture(scope="module")
async def postgres(settings: Settings) -> AsyncIterator[Settings]:
    async with scratch_database(settings) as database:
        yield database


@pytest.fixture(
    params=[
        "memory",
        pytest.param("postgres", marks=pytest.mark.stack),
        pytest.param("postgres, sealed in Python", marks=pytest.mark.stack),
    ]
)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Settings | None:
    """Which adapter; the servers are started only where they are needed."""
    if request.param == "memory":
        return None
    if request.param == "postgres, sealed in Python":
        monkeypatch.setattr("streams.envelope.sealer.native", lambda: None)
    settings: Settings = request.getfixturevalue("postgres")
    return settings


@pytest.fixture
async def subject(place: Settings | None) -> AsyncIterator[Subject]:
    if place is None:
        ids = Snowflakes(SystemClock(), FixedWorkerId(1))
        clock = SystemClock()
        yield Subject(
            MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock),
            ids.next,
        )
    else:
        async with open_log(place, role="test") as log:
            yield Subject(log.store, log.ids.next)


@pytest.fixture
def store(subject: Subject) -> EventStore:
    return subject.store


@pytest.fixture
def root(subject: Subject) -> int:
    """A root id that is new to the store."""
    return subject.next_id()


# ---------------------------------------------------------------- places


async def test_a_root_counts_without_gaps_over_single_events_and_batches(
    store: EventStore, root: int
) -> None:
    for size in (1, 3, 2):
        await store.append([event(root) for _ in range(size)])
    events = await root_events(store, root)
    assert [one.seq for one in events] == [1, 2, 3, 4, 5, 6]
    positions = [one.position for one in events]
    assert positions == sorted(set(positions))


async def test_every_stream_counts_its_own_versions(store: EventStore, root: int) -> None:
    batch = [event(root, node_name=name) for name in ("load", "save", "load")]
    receipt = await store.append([*batch, event(root, "playbook.initialized")])
    assert [one.stream_version for one in receipt.events] == [1, 1, 2, 1]
    later = await store.append([event(root, node_name="save"), event(root, node_name="load")])
    assert [one.stream_version for one in later.events] == [2, 3]


async def test_the_receipt_says_what_a_reader_finds(store: EventStore, root: int) -> None:
    receipt = await store.append([event(root), event(root, "loop.done")])
    found = await root_events(store, root)
    for given, one in zip(receipt.events, found, strict=True):
        assert given.outcome is Outcome.APPENDED
        assert (given.event_id, given.seq, given.position) == (one.event_id, one.seq, one.position)
        assert (given.stream_version, given.ingest_time) == (one.stream_version, one.ingest_time)
        assert given.chain == one.chain
    assert receipt.won


async def test_an_event_is_read_as_it_was_written(store: EventStore, root: int) -> None:
    written = event(root, "frame.committed")
    await store.append([written])
    (found,) = await root_events(store, root)
    for name in ("type", "root", "tenant_id", "organization_id", "idempotency_key", "event_time"):
        assert getattr(found, name) == getattr(written, name)
    for name in ("meta", "context", "result", "payload_ref", "node_name", "status", "trace"):
        assert getattr(found, name) == getattr(written, name)


async def test_the_chain_can_be_computed_again_from_the_checksums(
    store: EventStore, root: int
) -> None:
    for size in (2, 1, 3):
        await store.append([event(root) for _ in range(size)])
    chain = bytes(32)
    for one in await root_events(store, root):
        chain = hashlib.sha256(chain + bytes.fromhex(one.checksum)).digest()
        assert one.chain == chain.hex()


async def test_ingest_time_never_goes_back_within_a_root(store: EventStore, root: int) -> None:
    for _ in range(20):
        await store.append([event(root), event(root)])
    times = [one.ingest_time for one in await root_events(store, root)]
    assert times == sorted(times)
    assert all(at.utcoffset() is not None for at in times)


async def test_a_batch_may_touch_several_roots(subject: Subject) -> None:
    one, two = subject.next_id(), subject.next_id()
    receipt = await subject.store.append([event(two), event(one), event(two), event(one)])
    assert [given.seq for given in receipt.events] == [1, 1, 2, 2]
    for root_id, mine in ((one, (1, 3)), (two, (0, 2))):
        found = [found.event_id for found in await root_events(subject.store, root_id)]
        assert found == [receipt.events[at].event_id for at in mine]


async def test_roots_of_every_type_are_kept(subject: Subject) -> None:
    for name in ("catalog.registered", "schedule.fired", "tenant.created", "credential.stored"):
        made = event(subject.next_id(), name)
        await subject.store.append([made])
        found = [one async for one in subject.store.read_root(made.root)]
        assert [(one.type, one.root) for one in found] == [(name, made.root)]


# ---------------------------------------------------------------- idempotency


async def test_a_duplicate_returns_what_is_stored_and_changes_nothing(
    store: EventStore, root: int
) -> None:
    first = event(root)
    stored = (await store.append([first])).events[0]
    await store.append([event(root)])
    before = await root_events(store, root)
    again = (await store.append([first])).events[0]
    assert again == replace(stored, outcome=Outcome.DUPLICATE)
    assert await root_events(store, root) == before


async def test_a_retelling_with_other_times_producer_and_trace_is_a_duplicate(
    store: EventStore, root: int
) -> None:
    first = event(root, "frame.committed")
    stored = (await store.append([first])).events[0]
    assert first.payload_ref is not None
    told = replace(
        first,
        event_time=first.event_time.replace(year=2027),
        trace=None,
        payload_ref=replace(first.payload_ref, ipc=None),
    )
    again = (await store.append([told])).events[0]
    assert (again.event_id, again.outcome) == (stored.event_id, Outcome.DUPLICATE)


async def test_a_batch_may_mix_what_is_there_with_what_is_new(store: EventStore, root: int) -> None:
    first = event(root)
    await store.append([first])
    receipt = await store.append([event(root), first, event(root)])
    assert [one.outcome.value for one in receipt.events] == ["appended", "duplicate", "appended"]
    assert [one.seq for one in receipt.events] == [2, 1, 3]


async def test_the_same_key_with_other_content_is_refused(store: EventStore, root: int) -> None:
    first = event(root)
    stored = (await store.append([first])).events[0]
    with pytest.raises(IdempotencyConflict) as refused:
        await store.append([event(root), replace(first, context={"other": 1})])
    assert refused.value.stored_id == stored.event_id
    assert "idempotency_key" in str(refused.value)
    assert first.idempotency_key in str(refused.value)
    assert len(await root_events(store, root)) == 1


async def test_the_same_key_in_another_root_is_another_fact(subject: Subject) -> None:
    for _ in range(2):
        made = event(subject.next_id(), idempotency_key="the same")
        receipt = await subject.store.append([made])
        assert receipt.events[0].outcome is Outcome.APPENDED


async def test_a_duplicate_is_answered_whatever_version_it_expected(
    store: EventStore, root: int
) -> None:
    """A caller whose answer was lost asks again, and its condition no longer holds."""
    first = event(root, expected_version=0)
    await store.append([first])
    again = await store.append([first])
    assert again.events[0].outcome is Outcome.DUPLICATE


# ---------------------------------------------------------------- compare and swap


async def test_an_append_that_expects_the_version_wins(store: EventStore, root: int) -> None:
    await store.append([event(root, expected_version=0)])
    await store.append([event(root, expected_version=1), event(root, expected_version=2)])
    assert len(await root_events(store, root)) == 3


@pytest.mark.parametrize("expected", [0, 2])
async def test_an_append_that_expects_another_version_is_refused(
    store: EventStore, root: int, expected: int
) -> None:
    await store.append([event(root)])
    with pytest.raises(VersionConflict) as refused:
        await store.append([event(root, expected_version=expected)])
    assert (refused.value.expected, refused.value.found) == (expected, 1)
    assert refused.value.stream == f"execution/{root}/step/load"
    assert "expected_version" in str(refused.value)
    assert len(await root_events(store, root)) == 1


async def test_of_many_that_expect_the_same_version_one_wins(store: EventStore, root: int) -> None:
    await store.append([event(root)])
    tries = [store.append([event(root, expected_version=1)]) for _ in range(10)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, VersionConflict) for one in outcomes) == 9
    assert len(await root_events(store, root)) == 2


async def test_the_version_is_that_of_the_entity_not_of_the_root(
    store: EventStore, root: int
) -> None:
    await store.append([event(root, node_name="load"), event(root, node_name="load")])
    await store.append([event(root, node_name="save", expected_version=0)])
    assert len(await root_events(store, root)) == 3


# ---------------------------------------------------------------- atomicity


@pytest.mark.parametrize(
    "wrong",
    [{"tenant_id": ""}, {"type": "no.such"}, {"expected_version": 7}, {"tenant_id": "globex"}],
)
async def test_one_wrong_event_keeps_the_whole_batch_out(
    store: EventStore, root: int, wrong: dict[str, Any]
) -> None:
    await store.append([event(root)])
    bad = replace(event(root, payload_ref=None), **wrong)
    with pytest.raises(Refused):
        await store.append([event(root), bad, event(root)])
    assert len(await root_events(store, root)) == 1


async def test_a_batch_over_several_roots_is_refused_in_all_of_them(subject: Subject) -> None:
    one, two = subject.next_id(), subject.next_id()
    with pytest.raises(VersionConflict):
        await subject.store.append([event(one), event(two, expected_version=3)])
    assert await root_events(subject.store, one) == []
    assert await root_events(subject.store, two) == []


async def test_a_refusal_leaves_a_new_root_to_whoever_comes_first(
    store: EventStore, root: int
) -> None:
    with pytest.raises(VersionConflict):
        await store.append([event(root, expected_version=3)])
    stranger = event(root, tenant_id="globex", payload_ref=None)
    assert (await store.append([stranger])).events[0].seq == 1


async def test_a_refused_batch_may_be_put_right_and_appended(store: EventStore, root: int) -> None:
    good = event(root)
    with pytest.raises(VersionConflict):
        await store.append([good, event(root, expected_version=9)])
    assert (await store.append([good])).events[0].outcome is Outcome.APPENDED


async def test_an_empty_batch_is_refused(store: EventStore) -> None:
    with pytest.raises(BadBatch, match="at least one event"):
        await store.append([])


async def test_the_same_key_twice_in_a_batch_is_refused(store: EventStore, root: int) -> None:
    one = event(root)
    with pytest.raises(BadBatch, match="idempotency_key"):
        await store.append([one, event(root, idempotency_key=one.idempotency_key)])
    assert await root_events(store, root) == []


async def test_the_same_claim_twice_in_a_batch_is_refused(store: EventStore, root: int) -> None:
    with pytest.raises(BadBatch, match="claim"):
        await store.append([event(root, "loop.done"), event(root, "loop.done")])
    assert await root_events(store, root) == []


async def test_a_rule_of_the_envelope_is_checked_before_anything_is_sent(
    store: EventStore, root: int
) -> None:
    with pytest.raises(MissingField) as refused:
        await store.append([event(root, organization_id="")])
    assert isinstance(refused.value, BadEvent)
    assert refused.value.field == "organization_id"


# ---------------------------------------------------------------- claims


async def test_the_second_claim_is_skipped_with_its_whole_batch(
    store: EventStore, root: int
) -> None:
    won = await store.append([event(root, "loop.done")])
    lost = await store.append([event(root), event(root, "loop.done"), event(root)])
    assert won.won
    assert not lost.won
    assert (lost.claimed_by, lost.events) == (won.events[0].event_id, ())
    assert len(await root_events(store, root)) == 1


async def test_the_winner_that_asks_again_still_wins(store: EventStore, root: int) -> None:
    claim = event(root, "loop.done")
    await store.append([claim])
    again = await store.append([claim, event(root)])
    assert again.won
    assert [one.outcome.value for one in again.events] == ["duplicate", "appended"]


async def test_claims_of_other_values_types_and_roots_are_free(subject: Subject) -> None:
    one, two = subject.next_id(), subject.next_id()
    batch = [
        event(one, "loop.done"),
        event(one, "loop.done", meta={"loop_id": "7002"}),
        event(one, "loop.fanin.completed"),
        event(two, "loop.done"),
    ]
    assert all([(await subject.store.append([claim])).won for claim in batch])


async def test_of_many_that_claim_at_once_one_wins(store: EventStore, root: int) -> None:
    receipts = await asyncio.gather(
        *[store.append([event(root, "loop.done"), event(root)]) for _ in range(10)]
    )
    winners = [receipt for receipt in receipts if receipt.won]
    assert len(winners) == 1
    assert {r.claimed_by for r in receipts if not r.won} == {winners[0].events[0].event_id}
    assert len(await root_events(store, root)) == 2


# ---------------------------------------------------------------- the end of a root


@pytest.mark.parametrize("end", ["playbook.completed", "playbook.failed", "execution.cancelled"])
async def test_an_ended_root_takes_no_more(store: EventStore, root: int, end: str) -> None:
    await store.append([event(root), event(root, end)])
    with pytest.raises(RootEnded) as refused:
        await store.append([event(root)])
    assert f"execution/{root}" in str(refused.value)
    assert "event_type step.enter" in str(refused.value)
    assert len(await root_events(store, root)) == 2


async def test_nothing_follows_the_end_in_its_own_batch(store: EventStore, root: int) -> None:
    with pytest.raises(RootEnded):
        await store.append([event(root, "playbook.completed"), event(root)])
    assert await root_events(store, root) == []


async def test_an_ended_root_still_answers_duplicates(store: EventStore, root: int) -> None:
    first, last = event(root), event(root, "playbook.completed")
    await store.append([first, last])
    receipt = await store.append([first, last])
    assert [one.outcome.value for one in receipt.events] == ["duplicate", "duplicate"]


async def test_what_may_follow_an_end_does(store: EventStore, root: int) -> None:
    await store.append([event(root, "playbook.completed")])
    await store.append([event(root, "result.expired")])
    await store.append([event(root, "reply.sent"), event(root, "execution.dead_lettered")])
    with pytest.raises(RootEnded):
        await store.append([event(root)])
    assert len(await root_events(store, root)) == 4


async def test_the_end_and_what_may_follow_it_fit_in_one_batch(
    store: EventStore, root: int
) -> None:
    await store.append([event(root, "playbook.completed"), event(root, "reply.sent")])
    with pytest.raises(RootEnded):
        await store.append([event(root)])


async def test_a_root_that_is_reopened_goes_on_until_it_ends_again(
    store: EventStore, root: int
) -> None:
    await store.append([event(root, "playbook.failed")])
    await store.append([event(root, "redrive.requested")])
    await store.append([event(root)])
    await store.append([event(root, "playbook.completed")])
    with pytest.raises(RootEnded):
        await store.append([event(root)])


async def test_a_batch_may_reopen_a_root_and_go_on(store: EventStore, root: int) -> None:
    await store.append([event(root, "playbook.failed")])
    receipt = await store.append([event(root, "redrive.requested"), event(root)])
    assert [one.seq for one in receipt.events] == [2, 3]
    await store.append([event(root)])


async def test_a_batch_may_end_and_reopen_and_end_a_root(store: EventStore, root: int) -> None:
    await store.append([
        event(root, "playbook.failed"),
        event(root, "redrive.requested"),
        event(root),
        event(root, "playbook.completed"),
    ])  # fmt: skip
    with pytest.raises(RootEnded):
        await store.append([event(root)])


# ---------------------------------------------------------------- scope


@pytest.mark.parametrize("other", [{"tenant_id": "globex"}, {"organization_id": "sales"}])
async def test_a_root_belongs_to_one_tenant_and_organization(
    store: EventStore, root: int, other: dict[str, str]
) -> None:
    await store.append([event(root)])
    with pytest.raises(ForeignRoot) as refused:
        await store.append([event(root, payload_ref=None, **other)])
    assert "tenant" in str(refused.value)
    assert len(await root_events(store, root)) == 1


async def test_a_batch_cannot_open_a_root_for_two_tenants(store: EventStore, root: int) -> None:
    with pytest.raises(ForeignRoot):
        await store.append([event(root), event(root, tenant_id="globex", payload_ref=None)])
    assert await root_events(store, root) == []


async def test_a_root_id_belongs_to_one_type(store: EventStore, root: int) -> None:
    await store.append([event(root)])
    with pytest.raises(ForeignRoot) as refused:
        await store.append([event(root, "tenant.created")])
    assert refused.value.field == "root_type"


# ---------------------------------------------------------------- reading


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
    store, start = subject.store, await end_of(subject.store)
    roots = [subject.next_id() for _ in range(3)]
    for _ in range(4):
        for root_id in roots:
            await store.append([event(root_id), event(root_id)])
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


async def test_a_follower_gets_what_is_there_and_what_comes(subject: Subject) -> None:
    store, root_id = subject.store, subject.next_id()
    start = await end_of(store)
    await store.append([event(root_id), event(root_id)])
    follower = store.follow(start)
    seen = [await anext(follower), await anext(follower)]
    waiting = asyncio.ensure_future(anext(follower))
    await store.append([event(root_id)])
    seen.append(await asyncio.wait_for(waiting, 20))
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


async def test_an_empty_store_has_nothing_to_read(store: EventStore) -> None:
    end = await end_of(store)
    assert await store.read_log(end) == ((), end) or await store.read_log(end) == ([], end)
    assert Frontier() <= end


async def test_open_roots_are_those_that_have_not_ended(subject: Subject) -> None:
    open_id, ended_id = sorted((subject.next_id(), subject.next_id()))
    await subject.store.append([event(open_id)])
    await subject.store.append([event(ended_id), event(ended_id, "playbook.completed")])
    found = await subject.store.open_roots("execution")  # type: ignore[attr-defined]
    assert open_id in found
    assert ended_id not in found
    assert list(found) == sorted(found)


async def test_suspended_executions_are_told_with_the_place_of_their_last_suspension(
    subject: Subject,
) -> None:
    again, resumed, ended = (subject.next_id() for _ in range(3))
    pause, goes_on = "execution.suspended", "execution.resumed"
    await subject.store.append([event(again, t) for t in ("step.enter", pause, goes_on, pause)])
    await subject.store.append([event(resumed, t) for t in ("step.enter", pause, goes_on)])
    await subject.store.append([event(ended), event(ended, pause)])
    await subject.store.append([event(ended, "execution.cancelled")])
    found = await subject.store.suspended_executions()  # type: ignore[attr-defined]
    assert found[again] == 4
    assert not {resumed, ended} & found.keys()


# ---------------------------------------------------------------- families


def child_of(parent: int, ordinal: int) -> NewEvent:
    return replace(event(derive_root_id(parent, ordinal, "c")), parent_execution_id=parent)


async def test_open_children_are_those_that_this_execution_began(subject: Subject) -> None:
    parent, other = subject.next_id(), subject.next_id()
    children = [child_of(parent, ordinal) for ordinal in range(3)]
    for one in (event(parent), *children, child_of(other, 7)):
        await subject.store.append([one])
    await subject.store.append([event(children[1].root.id, "playbook.completed")])
    families: Any = subject.store
    found = await families.open_children(parent)
    assert found == sorted(children[at].root.id for at in (0, 2))
    assert await families.open_children(children[0].root.id) == []


async def test_endings_are_told_of_roots_that_have_ended(subject: Subject) -> None:
    families: Any = subject.store
    ended, going, unknown = subject.next_id(), subject.next_id(), subject.next_id()
    for root in (ended, going):
        await subject.store.append([event(root)])
    await subject.store.append([event(ended, "playbook.completed")])
    found = await families.endings([going, ended, unknown])
    assert list(found) == [ended]
    assert found[ended] == (await root_events(subject.store, ended))[-1]
    assert await families.endings([]) == {}
