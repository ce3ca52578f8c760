"""The specification's questions about loops, asked of a framed fan-out by its own names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from streams.app import Log, open_log
from streams.events.model import NewEvent, Root
from streams.settings import Settings
from tests.support.log.databases import dsn, event
from tests.support.planner.memory import World, loop, playbook, step

pytestmark = pytest.mark.stack

FAN_IN = """
    SELECT (meta->>'total_shards')::int AS total,
      count(*) FILTER (WHERE event_type = 'loop.shard.done') AS done,
      count(*) FILTER (WHERE event_type = 'loop.shard.failed') AS failed
    FROM noetl.event_log
    WHERE event_type IN ('loop.fanout.started', 'loop.shard.done', 'loop.shard.failed')
      AND execution_id = $1 AND node_name = $2 AND meta->>'loop_id' = $3
    GROUP BY total ORDER BY total NULLS LAST
"""
RECOVERY = """
    SELECT coalesce(max(current_index), -1) AS at,
      count(*) FILTER (WHERE event_type = 'command.completed') AS done,
      count(*) FILTER (WHERE event_type = 'command.failed') AS failed,
      max(context->>'collection_ref') FILTER (WHERE event_type = 'loop.started') AS collection,
      max((meta->>'collection_size')::int) FILTER (WHERE event_type = 'loop.started') AS size
    FROM noetl.event_log WHERE execution_id = $1 AND node_name = $2 AND meta->>'loop_id' = $3
"""


@pytest.fixture
async def log(database: Settings) -> AsyncIterator[Log]:
    async with open_log(database, role="test") as opened:
        yield opened


@pytest.fixture
async def reader(database: Settings) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn(database, "read"))
    yield connection
    await connection.close()


def frame(root: int, type: str, shard: str, **meta: Any) -> Any:
    """An event of a frame of shard `shard` of loop 500."""
    made = {"loop_id": "500", "shard_id": shard, "frame_id": f"60{shard}", "attempt": 1}
    made |= {"failed_rows": 0, **meta}
    known = event(root, type)
    return event(root, type, meta={k: v for k, v in made.items() if k in known.meta})


async def test_a_framed_fan_out_is_counted_as_shards(log: Log, reader: asyncpg.Connection) -> None:
    root = log.ids.next()
    started = {"loop_id": "500", "total_shards": 5}
    await log.store.append([event(root, "loop.fanout.started", meta=started)])
    await log.store.append([frame(root, "frame.dispatched", shard) for shard in "12345"])
    await log.store.append([
        frame(root, "frame.claimed", "1"),
        frame(root, "frame.committed", "1", continues=False),
        # Closed early: its rest is still to come, so the shard is not done yet.
        frame(root, "frame.committed", "2", continues=True),
        # Failed once and dispatched again: one shard, enqueued once.
        frame(root, "frame.failed", "3"),
        frame(root, "frame.dispatched", "3", attempt=2),
        frame(root, "frame.committed", "3", attempt=2, continues=False),
        frame(root, "frame.failed", "4"),
        frame(root, "frame.abandoned", "4"),
        # One of its rows failed.
        frame(root, "frame.committed", "5", continues=False, failed_rows=1),
    ])  # fmt: skip
    # Another loop of the same step, which must not be counted.
    other = {"loop_id": "501", "total_shards": 9}
    await log.store.append([
        event(root, "loop.fanout.started", meta=other),
        frame(root, "frame.committed", "6", loop_id="501", continues=False),
    ])  # fmt: skip

    rows = await reader.fetch(FAN_IN, root, "load", "500")
    assert [tuple(row) for row in rows] == [(5, 0, 0), (None, 2, 2)]
    enqueued = await reader.fetch(
        "SELECT meta->>'shard_id' FROM noetl.loop_event WHERE execution_id = $1"
        " AND event_type = 'loop.shard.enqueued' ORDER BY seq",
        root,
    )
    assert [row[0] for row in enqueued] == ["1", "2", "3", "4", "5"]


async def test_a_shard_that_another_frame_continues_is_enqueued_once(
    log: Log, reader: asyncpg.Connection
) -> None:
    root = log.ids.next()
    rest = frame(root, "frame.dispatched", "2")
    cursor = {"kind": "list", "from": 3, "to": 9, "continues": "601"}
    await log.store.append([
        frame(root, "frame.dispatched", "1"),
        frame(root, "frame.committed", "1", continues=True),
        replace(rest, context={**(rest.context or {}), "cursor": cursor}),
        frame(root, "frame.committed", "2", continues=False),
    ])  # fmt: skip
    rows = await reader.fetch(
        "SELECT event_type FROM noetl.loop_event WHERE execution_id = $1 ORDER BY seq", root
    )
    assert [row[0] for row in rows] == ["loop.shard.enqueued", "loop.shard.done"]


async def test_events_under_the_loop_names_themselves_are_counted_alike(
    log: Log, reader: asyncpg.Connection
) -> None:
    root, loop = log.ids.next(), {"loop_id": "500"}
    await log.store.append([
        event(root, "loop.fanout.started", meta={**loop, "total_shards": 3}),
        event(root, "loop.shard.done", meta={**loop, "shard_id": "a"}),
        event(root, "loop.shard.done", meta={**loop, "shard_id": "b"}),
        event(root, "loop.shard.failed", meta={**loop, "shard_id": "c"}),
    ])  # fmt: skip
    rows = await reader.fetch(FAN_IN, root, "load", "500")
    assert [tuple(row) for row in rows] == [(3, 0, 0), (None, 2, 1)]


async def test_a_loop_can_be_found_again_from_the_log(log: Log, reader: asyncpg.Connection) -> None:
    root, loop = log.ids.next(), {"loop_id": "500"}
    where = {"collection_ref": "noetl://tenant/acme/org/care/payloads/sha256/x"}
    await log.store.append([
        event(root, "loop.started", meta={**loop, "collection_size": 9}, context=where,
              current_index=0),
        event(root, "command.completed", meta=loop, current_index=1),
        event(root, "command.failed", meta=loop, current_index=3),
        event(root, "command.completed", meta=loop, current_index=2),
        event(root, "command.completed", meta={"loop_id": "501"}, current_index=8),
    ])  # fmt: skip
    row = await reader.fetchrow(RECOVERY, root, "load", "500")
    assert tuple(row) == (3, 2, 1, where["collection_ref"], 9)


async def test_a_loop_that_never_began_is_found_empty(log: Log, reader: asyncpg.Connection) -> None:
    row = await reader.fetchrow(RECOVERY, log.ids.next(), "load", "500")
    assert tuple(row) == (-1, 0, 0, None, None)


async def test_the_view_shows_every_event_of_the_log_once_and_shards_beside_them(
    log: Log, reader: asyncpg.Connection
) -> None:
    root = log.ids.next()
    done = frame(root, "frame.committed", "1", continues=False, rows=2)
    await log.store.append([event(root), done, event(root, "command.completed")])
    rows = await reader.fetch(
        "SELECT event_type, seq FROM noetl.event_log WHERE execution_id = $1"
        " ORDER BY seq, event_type",
        root,
    )
    assert [tuple(row) for row in rows] == [
        ("step.enter", 1),
        ("command.completed", 2),
        ("command.completed", 2),
        ("frame.committed", 2),
        ("loop.shard.done", 2),
        ("action_completed", 3),
        ("command.completed", 3),
    ]


async def test_a_shard_has_the_status_of_its_result_and_the_id_of_its_command(
    log: Log, reader: asyncpg.Connection
) -> None:
    root = log.ids.next()
    await log.store.append([
        frame(root, "frame.committed", "1", continues=False, rows=2),
        frame(root, "frame.committed", "2", continues=False, rows=2, failed_rows=1),
    ])  # fmt: skip
    rows = await reader.fetch(
        "SELECT result->>'status', meta->>'command_id', error IS NULL FROM noetl.loop_event"
        " WHERE execution_id = $1 AND event_type LIKE 'loop.shard.%' ORDER BY seq",
        root,
    )
    assert [tuple(row) for row in rows] == [("ok", "601", True), ("error", "602", False)]


async def test_the_recovery_query_is_right_for_a_loop_that_the_planner_ran(
    log: Log, reader: asyncpg.Connection
) -> None:
    world = World(playbook(step("each", loop=loop(list(range(25)), max_in_flight=8))))
    await world.start()
    first, second, third = world.take()
    await world.claim(first)
    await world.checkpoint(first, 6, None)
    await world.commit(second, failed=2)
    loop_id, copied = str(first.loop_id), log.ids.next()
    assert await _recovered(log, reader, world, copied, loop_id) == (20, 14, 2, None, 25)
    await world.commit(third)
    assert await _recovered(log, reader, world, log.ids.next(), loop_id) == (24, 19, 2, None, 25)


async def _recovered(
    log: Log, reader: asyncpg.Connection, world: World, root: int, loop_id: str
) -> tuple[Any, ...]:
    """Copy the events of a run in memory into the log, and ask for its loop."""
    names = ("type", "idempotency_key", "event_time", "node_name", "node_type", "status", "error")
    names += ("current_index", "current_item", "meta", "context", "result")
    for one in await world.events():
        fields = {name: getattr(one, name) for name in names}
        new = NewEvent(
            root=Root("execution", root), tenant_id="acme", organization_id="care", **fields
        )
        await log.store.append([new])
    return tuple(await reader.fetchrow(RECOVERY, root, "each", loop_id))
