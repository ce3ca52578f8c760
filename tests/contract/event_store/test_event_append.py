"""What every event store promises of an append: its places, once, at the expected version."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

import pytest

from streams.log.errors import (
    IdempotencyConflict,
    VersionConflict,
)
from streams.log.port import AppendOutcome, EventStore
from tests.support.events.stores import Subject
from tests.support.log.databases import event, root_events


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
        assert given.outcome is AppendOutcome.APPENDED
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


async def test_a_duplicate_returns_what_is_stored_and_changes_nothing(
    store: EventStore, root: int
) -> None:
    first = event(root)
    stored = (await store.append([first])).events[0]
    await store.append([event(root)])
    before = await root_events(store, root)
    again = (await store.append([first])).events[0]
    assert again == stored._replace(outcome=AppendOutcome.DUPLICATE)
    assert await root_events(store, root) == before


async def test_a_retelling_with_other_times_producer_and_trace_is_a_duplicate(
    store: EventStore, root: int
) -> None:
    first = event(root, "frame.committed")
    stored = (await store.append([first])).events[0]
    assert first.payload_ref is not None
    other = replace(
        first,
        event_time=first.event_time.replace(year=2027),
        trace=None,
        payload_ref=replace(first.payload_ref, ipc=None),
    )
    again = (await store.append([other])).events[0]
    assert (again.event_id, again.outcome) == (stored.event_id, AppendOutcome.DUPLICATE)


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
        assert receipt.events[0].outcome is AppendOutcome.APPENDED


async def test_a_duplicate_is_answered_whatever_version_it_expected(
    store: EventStore, root: int
) -> None:
    """A caller whose answer was lost asks again, and its condition no longer holds."""
    first = event(root, expected_version=0)
    await store.append([first])
    again = await store.append([first])
    assert again.events[0].outcome is AppendOutcome.DUPLICATE


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
