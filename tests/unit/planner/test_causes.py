"""Every event but a root's first names the event that caused it."""

from __future__ import annotations

from dataclasses import replace

from streams.events.model import Event, NewEvent
from streams.log.port import AppendOutcome, Frontier
from tests.support.planner.memory import World, loop, playbook, step
from tests.support.planner.with_worker import Whole, whole

CALLS = """
metadata: {path: tests/calls}
workflow:
  - step: each
    loop: {in: [1, 2, 3], iterator: n}
    tool: {kind: noop, data: "{{ n }}", spec: {result: {store: {kind: object}}}}
    next: [{step: call}]
  - step: call
    tool: {kind: playbook, path: tests/called}
"""
CALLED = """
metadata: {path: tests/called}
workflow:
  - step: one
    tool: {kind: noop}
"""


async def log_of(here: Whole) -> list[Event]:
    found, _ = await here.world.store.read_log(Frontier(), limit=10_000)
    return list(found)


async def test_every_event_but_the_first_of_its_root_has_a_cause_before_it() -> None:
    async with whole(CALLS, CALLED) as here:
        await here.result()
        events = await log_of(here)
    known = {event.event_id: event for event in events}
    assert {"frame.claimed", "result.stored", "command.completed"} <= {e.type for e in events}
    for event in events:
        if event.seq == 1:
            continue
        assert event.causation_id is not None, event.type
        assert known[event.causation_id].position < event.position, event.type


async def test_a_commit_is_caused_by_its_claim_and_a_claim_by_the_planner() -> None:
    async with whole(CALLS, CALLED) as here:
        await here.result()
        events = await log_of(here)
    known = {event.event_id: event for event in events}
    causes = {
        (event.type, known[event.causation_id].type) for event in events if event.causation_id
    }
    assert ("frame.committed", "frame.claimed") in causes
    assert ("result.stored", "frame.claimed") in causes
    assert ("frame.claimed", "frame.dispatched") in causes
    assert ("stage.opened", "playbook.initialized") in causes


async def test_a_decision_made_again_from_another_cause_is_the_stored_one() -> None:
    world = World(playbook(step("each", loop=loop([1]))))
    await world.start()
    opened = next(event for event in await world.events() if event.type == "stage.opened")
    again = replace(_new(opened), causation_id=opened.event_id + 17)
    (appended,) = (await world.store.append([again])).events
    assert (appended.outcome, appended.event_id) == (AppendOutcome.DUPLICATE, opened.event_id)


def _new(event: Event) -> NewEvent:
    names = ("type", "root", "tenant_id", "organization_id", "idempotency_key", "event_time")
    names += ("correlation_id", "parent_execution_id", "catalog_id", "node_name", "status")
    names += ("meta", "context", "result", "payload_ref")
    return NewEvent(**{name: getattr(event, name) for name in names})


async def test_an_expired_lease_has_a_cause_too() -> None:
    world = World(playbook(step("each", loop=loop([1]))))
    await world.start()
    (item,) = world.take()
    await world.claim(item)
    await world.pump()
    await world.after(120)
    expired = next(one for one in await world.events() if one.type == "frame.lease_expired")
    assert expired.causation_id is not None
