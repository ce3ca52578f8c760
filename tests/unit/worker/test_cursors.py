from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.events.model import Json
from streams.playbook.expressions import compile_value
from streams.playbook.model import Cursor, Task
from streams.worker.attempt.frame import FrameRunner
from streams.worker.rows.cursors import Rows, read_rows
from streams.worker.rows.offsets import row_of, split
from tests.support.worker.memory import Dying, FakeSaver, FakeTool, World, loop_step, ok, rule, task

ECHO = task("echo", "t", {"n": "{{ item.id }}"})


def cursor(form: str, **config: Any) -> Cursor:
    return Cursor(kind="db", form=form, config=compile_value({"auth": "pg", **config}))


def world(given: Cursor, rows: list[dict[str, Any]], *tasks: Task, **tools: Any) -> World:
    database = FakeTool(lambda config, call: ok({"rows": rows, "row_count": len(rows)}))
    tools |= {"t": FakeTool(), "db": database}
    return World(loop_step(*(tasks or (ECHO,)), cursor=given), tools)


def keyed(*ids: int) -> list[dict[str, Any]]:
    return [{"id": n, "_noetl_key": str(n)} for n in ids]


KEYSET = cursor("keyset", query="SELECT id FROM t WHERE a = :a", key="id", params={"a": 1})
WINDOW = {"kind": "keyset", "after": "10", "through": "30", "type": "bigint"}


async def read(here: World, **changes: Any) -> Rows:
    item = await here.frame(**changes)
    loop = here.step.loop
    assert loop is not None
    return await read_rows(item, loop.cursor, {}, {}, here.ports, here.options())


async def test_a_keyset_window_is_asked_for_with_its_bounds_as_parameters() -> None:
    here = world(KEYSET, keyed(11, 20))
    rows = await read(here, cursor=WINDOW)
    assert rows.items == [{"id": 11}, {"id": 20}]
    config, call = here.tools["db"].calls[0]
    assert config["params"] == {"a": 1, "noetl_after": "10", "noetl_through": "30"}
    assert config["auth"] == "pg"
    assert 'q."id" > CAST(CAST(:noetl_after AS text) AS bigint)' in config["command"]
    assert config["command"].endswith('ORDER BY q."id"')
    assert call.task == "cursor"


async def test_a_window_without_bounds_asks_for_everything() -> None:
    here = world(KEYSET, [])
    await read(here, cursor={"kind": "keyset", "after": None, "through": None})
    assert "WHERE q." not in here.tools["db"].calls[0][0]["command"]


async def test_a_type_that_is_none_is_refused() -> None:
    here = world(KEYSET, [])
    item = await here.frame(cursor={**WINDOW, "type": "int; DROP TABLE t"})
    await FrameRunner(here.ports, here.options()).run(item)
    assert (await here.last()).error == "'int; DROP TABLE t' is not a SQL type"


async def test_an_early_close_goes_on_after_the_last_key_and_parts_no_equal_keys() -> None:
    here = world(KEYSET, keyed(11, 12, 12, 12, 13))
    here.tools["t"]._answer = lambda config, call: (here.clock.advance(1.0), ok(1))[1]
    policy = {"duration_ms": 2000, "row_concurrency": 1}
    await FrameRunner(here.ports, here.options()).run(
        await here.frame(cursor=WINDOW, policy=policy)
    )
    committed = await here.last()
    assert committed.meta["rows"] == 4
    assert committed.context == {"cursor": {**WINDOW, "after": "12", "first": 4}}


CLAIM = cursor("claim", claim="UPDATE t SET by = :frame_id::int8 LIMIT :size RETURNING *")


async def test_a_claim_binds_what_the_statement_names() -> None:
    here = world(CLAIM, [{"id": 1}])
    rows = await read(here, cursor={"kind": "claim"}, policy={"size": 5})
    config, _ = here.tools["db"].calls[0]
    assert config["params"] == {"frame_id": "4001", "size": 5}
    assert config["fence"] is False
    assert rows.exhausted is True


async def test_claimed_rows_are_all_done_because_no_other_frame_would_get_them() -> None:
    here = world(CLAIM, [{"id": 1}, {"id": 2}])
    here.tools["t"]._answer = lambda config, call: (here.clock.advance(1.0), ok(1))[1]
    policy = {"size": 2, "duration_ms": 1, "row_concurrency": 1}
    item = await here.frame(cursor={"kind": "claim"}, policy=policy)
    await FrameRunner(here.ports, here.options()).run(item)
    committed = await here.last()
    assert committed.meta["rows"] == 2
    assert committed.meta["continues"] is False
    assert committed.result["exhausted"] is False


async def test_a_claim_whose_rows_were_saved_is_adopted_before_others_are_claimed() -> None:
    save = task("save", "saver", {"value": "{{ item.id }} {{ iter.page }}"}, deferrable=True)
    page = task("page", "noop", {}, rule(None, "continue", set_iter={"page": 1}))
    saver = FakeSaver()
    here = world(CLAIM, [{"id": 1}], page, save, saver=saver)
    item = await here.frame(cursor={"kind": "claim"}, policy={"size": 1, "row_concurrency": 1})
    first = replace(here, tools={**here.tools, "saver": Dying(saver)})
    with pytest.raises(KeyboardInterrupt):
        await FrameRunner(first.ports, first.options()).run(item)
    assert len(saver.saved) == 1
    here.tools["db"].calls.clear()
    await FrameRunner(here.ports, here.options(name="worker-2")).run(await here.expire(item))
    assert (await here.last()).meta["rows"] == 1
    assert here.tools["db"].calls == []


class FakePartitions:
    async def ranges(self, topic: str) -> dict[int, tuple[int, int]]:
        return {0: (0, 5), 1: (7, 7)}

    async def read(self, topic: str, partition: int, start: int, end: int) -> Any:
        return [row_of(partition, n, None, b"x", {}, 0) for n in range(start, end) if n != 1]


async def test_offsets_continue_at_the_next_record_that_is_there() -> None:
    here = world(cursor("offsets", topic="in"), [])
    here.ports = replace(here.ports, partitions=FakePartitions())
    given = {"kind": "offsets", "partition": 0, "from": 0, "to": 4}
    rows = await read(here, cursor=given)
    assert [one["offset"] for one in rows.items if isinstance(one, dict)] == [0, 2, 3]
    assert rows.rest is not None
    assert rows.rest(1) == {**given, "from": 2, "first": 1}


async def test_rows_are_numbered_over_all_frames_of_a_cursor() -> None:
    topic = world(cursor("offsets", topic="in"), [])
    topic.ports = replace(topic.ports, partitions=FakePartitions())
    given = {"kind": "offsets", "partition": 0, "from": 0, "to": 4, "first": 40}
    keys = await read(
        world(KEYSET, [{"id": 11, "_noetl_key": "11"}]), cursor={**WINDOW, "first": 7}
    )
    claimed = await read(world(CLAIM, []), cursor={"kind": "claim"}, policy={"size": 5}, ordinal=3)
    assert (await read(topic, cursor=given)).first == 40
    assert (keys.first, claimed.first) == (7, 15)
    assert keys.rest is not None
    assert keys.rest(1)["first"] == 8


def test_ranges_are_cut_to_size() -> None:
    found = split({1: (7, 7), 0: (0, 5)}, 2)
    assert found == {"ranges": [[0, 0, 2], [0, 2, 4], [0, 4, 5]], "rows": 5}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[1]", [1]),
        (b"12345", "12345"),
        (b"1e5", "1e5"),
        (b"true", "true"),
        (b"", ""),
        (b"{no json", "{no json"),
        (None, None),
    ],
)
def test_values_of_records_keep_their_kind(value: bytes | None, expected: Json) -> None:
    assert row_of(0, 0, None, value, {}, 0)["value"] == expected
