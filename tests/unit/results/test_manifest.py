"""A loop's rows as later steps read them: in item order, and only when somebody does."""

from __future__ import annotations

from typing import Any

from streams.events.model import PayloadRef
from streams.execution.plan import FAILED
from streams.kafka.work.item import WorkItem
from streams.payload.arrow.rows import encode_rows
from streams.payload.port import ARROW, Scope
from streams.planner.limits import Rules
from streams.playbook.expressions import compile_value
from streams.results.reading import MANIFEST, read_value
from tests.support.planner.memory import World, loop, playbook, step

SCOPE = Scope("acme", "care")


def world(then: Any) -> World:
    each = step("each", "end", loop=loop(list(range(25)), max_in_flight=8), has_readers=True)
    return World(playbook(each, step("end", tool=None), returns=compile_value(then)))


async def commit(
    here: World, item: WorkItem, upto: int | None = None, *, lost: bool = False
) -> None:
    """Commit a frame whose rows are ten times their items; close it early where asked to."""
    assert item.cursor is not None
    first, last = item.cursor["from"], item.cursor["to"]
    end = last if upto is None else upto
    encoded = encode_rows([{"n": n * 10} for n in range(first, end)])
    ref = await here.payloads.put(
        SCOPE, encoded.data, media_type=ARROW, row_count=encoded.row_count
    )
    if lost:
        await here.payloads.delete(ref)
    rest = {"kind": "list", "from": end, "to": last}
    fields = {} if upto is None else {"continues": True, "cursor": rest}
    await here.commit(item, rows=end - first, payload_ref=ref, **fields)


async def test_rows_come_in_the_order_of_the_items_whoever_was_first() -> None:
    here = world({"rows": "{{ each.data }}", "same": "{{ each.result | length }}"})
    await here.start()
    first, second, third = here.take()
    await commit(here, third)
    await commit(here, first, upto=4)
    await commit(here, second)
    (rest,) = here.take()
    await commit(here, rest)
    plan = await here.plan()
    assert plan.result["data"] == {"rows": [{"n": n * 10} for n in range(25)], "same": 25}
    (stored,) = [event for event in await here.events() if event.type == "result.stored"]
    assert stored.payload_ref is not None
    assert stored.payload_ref.media_type == MANIFEST
    assert len(await read_value(here.payloads, stored.payload_ref)) == 25


async def output(here: World, first: int, end: int) -> PayloadRef:
    encoded = encode_rows([{"n": n * 10} for n in range(first, end)])
    return await here.payloads.put(
        SCOPE, encoded.data, media_type=ARROW, row_count=encoded.row_count
    )


async def test_checkpointed_rows_count_in_the_frame_the_manifest_and_the_result() -> None:
    here = world({"rows": "{{ each.data }}", "counts": "{{ each.counts }}"})
    await here.start()
    first, second, third = here.take()
    await here.claim(first)
    await here.checkpoint(first, 6, await output(here, 0, 6), ctx={"seen": 6})
    await commit(here, second)
    await commit(here, third)
    await here.after(120)
    (again,) = here.take()
    assert (again.cursor, again.rows_before) == ({"kind": "list", "from": 6, "to": 10}, 6)
    await commit(here, again)
    plan = await here.plan()
    assert plan.result["data"]["rows"] == [{"n": n * 10} for n in range(25)]
    assert plan.result["data"]["counts"]["completed"] == 25
    assert plan.ctx == {"seen": 6}
    assert (plan.loops["each"]["done"], plan.loops["each"]["failed"]) == (25, 0)


async def test_checkpointed_rows_of_an_abandoned_frame_are_not_lost() -> None:
    here = world("{{ each.data }}")
    here.rules = Rules(max_attempts=1)
    here.planner = here.new_planner()
    await here.start()
    first, second, third = here.take()
    await commit(here, second)
    await commit(here, third)
    await here.claim(first)
    await here.checkpoint(first, 6, await output(here, 0, 6))
    await here.after(120)
    plan = await here.plan()
    assert (plan.loops["each"]["done"], plan.status) == (21, FAILED)
    (stored,) = [event for event in await here.events() if event.type == "result.stored"]
    assert stored.payload_ref is not None
    rows = await read_value(here.payloads, stored.payload_ref)
    assert rows == [{"n": n * 10} for n in range(6)] + [None] * 4 + [
        {"n": n * 10} for n in range(10, 25)
    ]


async def test_rows_of_a_frame_that_gave_nothing_are_null() -> None:
    here = world("{{ each.data }}")
    await here.start()
    first, second, third = here.take()
    await commit(here, second)
    await here.commit(first)
    await here.commit(third)
    rows = (await here.plan()).result["data"]
    assert rows == [None] * 10 + [{"n": n * 10} for n in range(10, 20)] + [None] * 5


async def test_counts_are_there_without_the_rows() -> None:
    here = world("{{ [each.total, each.completed, each._store, each.status] }}")
    await here.start()
    for item in here.take():
        await commit(here, item, lost=True)
    assert (await here.plan()).result["data"] == [25, 25, "object", "success"]


async def test_rows_that_are_gone_fail_the_execution_with_a_word() -> None:
    here = world("{{ each.data }}")
    await here.start()
    for item in here.take():
        await commit(here, item, lost=True)
    plan = await here.plan()
    assert plan.status == "FAILED"
    assert "the payload is not in the store" in (plan.error or "")
