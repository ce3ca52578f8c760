"""Events of loops, as specification 002 lists their columns."""

from __future__ import annotations

from streams.playbook.model import FramePolicy, Mode
from tests.support.planner.memory import World, loop, playbook, step


async def test_a_frame_of_one_row_is_an_item_of_the_loop() -> None:
    world = World(playbook(step("each", loop=loop(["a", "b"], policy=None))))
    await world.start()
    found = [event for event in await world.events() if event.type == "loop.item"]
    assert [(one.current_index, one.meta["iter_index"], one.current_item) for one in found] == [
        (0, 0, "a"),
        (1, 1, "b"),
    ]
    assert {(one.status, one.node_name) for one in found} == {("dispatched", "each")}


async def test_frames_of_more_rows_write_no_items_but_their_first_index() -> None:
    world = World(playbook(step("each", loop=loop(list(range(25))))))
    await world.start()
    events = await world.events()
    assert "loop.item" not in {event.type for event in events}
    indexes = {event.type: event.current_index for event in events if event.type == "loop.started"}
    assert indexes == {"loop.started": 0}
    dispatched = [event.current_index for event in events if event.type == "frame.dispatched"]
    assert dispatched == [0, 10, 20]


async def test_a_fan_in_is_counted_in_shards() -> None:
    fan = loop(list(range(25)), mode=Mode.FANOUT, policy=FramePolicy(size=10))
    world = World(playbook(step("each", loop=fan, on_error="continue")))
    await world.start()
    first, second, third = world.take()
    await world.commit(first)
    await world.commit(second, failed=3)
    await world.commit(third)
    ended = next(one for one in await world.events() if one.type == "loop.fanin.completed")
    assert ended.status == "partial"
    assert ended.result == {"status": "partial", "context": {"done": 2, "failed": 1, "total": 3}}
    started = next(one for one in await world.events() if one.type == "loop.fanout.started")
    assert started.current_index == 0
