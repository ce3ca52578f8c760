"""Results that an outside worker left damaged, lied about, or left in great number."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streams.events.model import PayloadRef
from streams.kafka.work.item import WorkItem
from streams.payload.content import describe
from streams.payload.port import JSON, Scope
from streams.planner.decision_inputs import Known, NeedsResult, name_of
from streams.playbook.expressions import compile_value
from tests.support.planner.memory import World, playbook, step

ACME, OTHER = Scope("acme", "care"), Scope("other", "care")


async def complete(here: World, item: WorkItem, ref: PayloadRef) -> None:
    """Complete a command as an outside worker does whose output is a payload."""
    await here.claim(item)
    await here.append(
        "command.completed",
        key=str(item.entity_id),
        node_name=item.step,
        status="success",
        meta={"command_id": str(item.entity_id), "attempt": item.attempt, "worker": "w1"},
        result={"status": "success", "meta": {}},
        payload_ref=ref,
    )
    await here.pump()


def world(then: Any, *steps: str) -> World:
    made = [step(one, *steps[at + 1 : at + 2]) for at, one in enumerate(steps)]
    return World(playbook(*made, returns=compile_value(then)))


async def test_output_that_is_not_the_json_it_says_fails_its_execution_alone() -> None:
    here = world("{{ a.data.n }}", "a")
    await here.start()
    (item,) = here.take()
    await complete(here, item, await here.payloads.put(ACME, b"{half", media_type=JSON))
    plan = await here.plan()
    assert plan.has_ended
    assert "not JSON" in str(plan.error)


def test_what_was_read_for_one_tenant_or_as_one_kind_answers_for_no_other() -> None:
    theirs = describe(OTHER, b'"secret"', media_type=JSON)
    ours = describe(ACME, b'"secret"', media_type=JSON)
    known = Known({name_of(theirs): "secret"})
    assert known.result(theirs) == "secret"
    for other in (ours, replace(theirs, media_type="text/plain")):
        with pytest.raises(NeedsResult):
            known.result(other)


async def test_a_decision_may_read_more_results_than_the_planner_keeps() -> None:
    names = [f"s{n}" for n in range(70)]
    here = world({one: f"{{{{ {one}.data }}}}" for one in names}, *names)
    await here.start()
    for n in range(len(names)):
        (item,) = here.take()
        ref = await here.payloads.put(ACME, orjson.dumps(f"data {n}"), media_type=JSON)
        await asyncio.wait_for(complete(here, item, ref), 60)
    plan = await here.plan()
    assert plan.result["data"] == {f"s{n}": f"data {n}" for n in range(70)}
