"""What every event store promises of a batch: all or nothing, and one winner of a claim."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from streams.errors import Refused
from streams.events.errors import BadEvent, MissingField
from streams.log.errors import (
    BadBatch,
    VersionConflict,
)
from streams.log.port import AppendOutcome, EventStore
from tests.support.events.stores import Subject
from tests.support.log.databases import event, root_events


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
    assert (await store.append([good])).events[0].outcome is AppendOutcome.APPENDED


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
