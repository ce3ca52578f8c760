"""What every event store promises of a root: one owner, an end, and what may follow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.events.model import NewEvent
from streams.ids import derive_root_id
from streams.log.errors import (
    ForeignRoot,
    RootEnded,
)
from streams.log.port import EventStore
from tests.support.events.stores import Subject
from tests.support.log.databases import event, root_events


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
    among = subject.store.suspended_executions  # type: ignore[attr-defined]
    assert await among([again, resumed, ended]) == {again: 4}
    assert await among([resumed]) == await among([]) == {}


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


async def test_a_detached_child_is_not_among_the_open_children(subject: Subject) -> None:
    parent = subject.next_id()
    attached, left = child_of(parent, 0), derive_root_id(parent, 1, "c")
    first = event(left, "playbook.initialized", meta={"detached": True})
    detached = replace(first, parent_execution_id=parent)
    for one in (event(parent), attached, detached):
        await subject.store.append([one])
    families: Any = subject.store
    assert await families.open_children(parent) == [attached.root.id]


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
