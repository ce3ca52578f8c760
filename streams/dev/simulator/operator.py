"""The simulated operator, who suspends and resumes executions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.api.suspension import steer
from streams.dev.simulator.world import World
from streams.errors import Refused
from streams.events.model import Event, NewEvent, Root
from streams.execution.suspension import resumed, suspended

_REST_S = (3.0, 45.0)
_SUSPENDED_S = (0.5, 130.0)


async def operate(world: World) -> None:
    """Suspend occasionally during the fault phase; resume every suspended execution."""
    random = world.random
    wakes: dict[int, float] = {}
    rests_until = random.uniform(*_REST_S)
    while True:
        await asyncio.sleep(1.0)
        now = world.loop.time()
        for execution_id in await world.store.suspended_executions():
            if execution_id not in wakes:
                world.faults.counts["planner suspended"] += 1
                wakes[execution_id] = now + random.uniform(*_SUSPENDED_S)
            if now >= wakes[execution_id] or not world.faults.is_on:
                world.poison.discard(execution_id)
                await _steer(world, execution_id, suspend=False)
                del wakes[execution_id]
        if now < rests_until or not world.faults.is_on:
            continue
        rests_until = now + random.uniform(*_REST_S)
        if open_ids := [
            key for key in await world.store.open_roots("execution") if key not in wakes
        ]:
            chosen = random.choice(open_ids)
            world.faults.counts["operator suspended"] += 1
            wakes[chosen] = now + random.uniform(*_SUSPENDED_S)
            await _steer(world, chosen, suspend=True)


async def _steer(world: World, execution_id: int, *, suspend: bool) -> None:
    now = world.clock().now()

    def next_of(own: Sequence[Event]) -> NewEvent:
        if suspend:
            return suspended(own, by="operator", reason="because", now=now)
        return resumed(own, by="operator", now=now)

    try:
        await steer(world.store, Root("execution", execution_id), next_of)
    except Refused:
        return  # it ended, or was changed concurrently
