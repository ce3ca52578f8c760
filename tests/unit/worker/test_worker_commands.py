from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from streams.payload.content import reference_json
from streams.payload.port import JSON, Scope
from streams.playbook.data_flow import key_paths_of
from streams.playbook.expressions import compile_value
from streams.playbook.model import Cursor, Loop, Mode, Step
from streams.worker.attempt.command import CommandRunner
from streams.worker.errors import TargetUnavailable
from streams.worker.port import Call, Config, Outcome
from tests.support.worker.memory import FakeTool, World, http_error, ok, rule, task


def world(*tasks: Any, **tools: Any) -> World:
    step = Step(name="once", tasks=tasks, key_paths=key_paths_of(tasks, None))
    return World(step, {"t": FakeTool(), **tools})


async def ran(here: World, **changes: Any) -> Any:
    await CommandRunner(here.ports, here.options()).run(await here.command(**changes))
    return await here.last()


async def test_a_command_is_claimed_run_and_completed() -> None:
    here = world(task("echo", "t", {"n": "{{ workload.n }}"}))
    last = await ran(here, document={"input": {"workload": {"n": 3}}})
    assert [e.type for e in await here.events("command.")] == [
        "command.issued",
        "command.claimed",
        "command.completed",
    ]
    assert last.status == "success"
    assert last.result == {"status": "success", "data": {"n": 3}, "meta": {}}
    assert last.stream_version == 3


async def test_a_cancelled_command_is_handed_back() -> None:
    begun = asyncio.Event()

    class Hanging(FakeTool):
        async def run(self, config: Config, call: Call) -> Outcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError("it hangs")

    here = world(task("a", "t", {}), t=Hanging())
    item = await here.command()
    running = asyncio.ensure_future(CommandRunner(here.ports, here.options()).run(item))
    await begun.wait()
    running.cancel()
    await asyncio.wait({running})
    last = await here.last()
    assert (last.type, last.meta["attempt"]) == ("command.released", item.attempt)
    assert running.cancelled()


async def test_changes_of_ctx_come_with_the_result() -> None:
    here = world(task("a", "noop", {}, rule(None, "continue", set_ctx={"k": [1]})))
    assert (await ran(here)).result["ctx"] == {"k": [1]}


async def test_a_failure_names_kind_message_and_task() -> None:
    here = world(task("fetch", "http", {}), http=FakeTool(first=[http_error(404)]))
    last = await ran(here)
    assert (last.type, last.status) == ("command.failed", "error")
    assert last.error == "fetch: http.status: the server said 404"
    error = {"kind": "http.status", "message": "the server said 404", "task": "fetch"}
    assert last.result == {"status": "error", "error": error, "meta": {}, "data": None}


async def test_a_large_result_goes_to_the_payload_store_with_a_first_look() -> None:
    rows = ["x" * 100] * 1000
    spec = {"result": {"select": [{"path": "$.rows[0]", "as": "first"}]}}
    tool = FakeTool(lambda config, call: ok({"rows": rows}))
    here = world(task("a", "t", {}, spec=spec), t=tool)
    last = await ran(here)
    assert "data" not in last.result
    assert last.result["extracted"] == {"first": rows[0]}
    ref = last.result["ref"]
    assert ref["preview"] == {"rows": {"_items": 1000}}
    assert (ref["store"], ref["scope"], ref["expires_at"]) == ("kv", "permanent", None)
    assert orjson.loads(await here.payloads.get(last.payload_ref)) == {"rows": rows}
    (stored,) = await here.events("result.")
    assert (stored.result, stored.payload_ref) == (ref, last.payload_ref)
    assert ref["ref"].endswith(f"/step/once/task/a/{stored.meta['result_id']}")


async def test_text_that_no_database_can_hold_goes_to_the_payload_store() -> None:
    here = world(task("a", "t"), t=FakeTool(lambda config, call: ok("a\x00b")))
    last = await ran(here)
    assert orjson.loads(await here.payloads.get(last.payload_ref)) == "a\x00b"


async def test_an_earlier_result_behind_a_reference_is_just_there() -> None:
    here = world(task("a", "t", {"x": "{{ fetch.data.x }}", "y": "{{ fetch.x }}"}))
    data = orjson.dumps({"x": 5})
    ref = await here.payloads.put(Scope("acme", "care"), data, media_type=JSON)
    steps = {"fetch": {"status": "success", "meta": {}, "_ref": reference_json(ref)}}
    last = await ran(here, document={"input": {"steps": steps}})
    assert last.result["data"] == {"x": 5, "y": 5}


async def test_an_earlier_result_that_nobody_reads_is_not_fetched() -> None:
    here = world(task("a", "t", {}))
    ref = await here.payloads.put(Scope("acme", "care"), b"{}", media_type=JSON)
    await here.payloads.delete(ref)
    steps = {"fetch": {"status": "success", "meta": {}, "_ref": reference_json(ref)}}
    last = await ran(here, document={"input": {"steps": steps}})
    assert last.type == "command.completed"


async def test_a_document_behind_a_reference_is_read() -> None:
    here = world(task("a", "t", {"n": "{{ workload.n }}"}))
    data = orjson.dumps({"input": {"workload": {"n": 9}}})
    ref = await here.payloads.put(Scope("acme", "care"), data, media_type=JSON)
    last = await ran(here, document=None, document_ref=ref)
    assert last.result["data"] == {"n": 9}


async def test_a_bug_fails_the_command_with_its_text() -> None:
    def broken(config: Any, call: Any) -> Outcome:
        raise ZeroDivisionError("a bug")

    last = await ran(world(task("a", "t"), t=FakeTool(broken)))
    assert last.type == "command.failed"
    assert last.error == "ZeroDivisionError: a bug"


async def test_a_target_that_stays_down_leaves_the_command_to_somebody_else() -> None:
    def down(config: Any, call: Any) -> Outcome:
        raise TargetUnavailable("no database")

    here = world(task("a", "t"), t=FakeTool(down))
    command = await here.command()
    await CommandRunner(here.ports, here.options(give_up_after_s=0.05)).run(command)
    assert (await here.last()).type == "command.claimed"


KEYSET = Cursor(
    kind="db",
    form="keyset",
    config=compile_value({"auth": "pg", "query": "SELECT * FROM t;", "key": "id"}),
)


def planned(*found: dict[str, Any]) -> World:
    tool = FakeTool(lambda config, call: ok({"rows": list(found), "row_count": len(found)}))
    loop = Loop(iterator="row", mode=Mode.CURSOR, cursor=KEYSET)
    return World(Step(name="once", loop=loop), {"db": tool})


async def test_planning_a_keyset_gives_the_last_key_of_every_window() -> None:
    rows = [
        {"boundary": "100", "type": "bigint", "total": 150, "nulls": 0, "through": 100},
        {"boundary": "150", "type": "bigint", "total": 150, "nulls": 0, "through": 150},
    ]
    here = planned(*rows)
    last = await ran(here, tool="cursor.plan", document={"input": {}, "size": 100})
    expected = {"type": "bigint", "boundaries": ["100", "150"], "counts": [100, 150], "rows": 150}
    assert last.result["data"] == expected
    config, _ = here.tools["db"].calls[0]
    assert config["auth"] == "pg"
    assert "(SELECT * FROM t)" in config["command"]


async def test_planning_a_keyset_with_rows_without_a_key_is_refused() -> None:
    here = planned({"boundary": None, "type": "bigint", "total": 3, "nulls": 2})
    last = await ran(here, tool="cursor.plan", document={"input": {}, "size": 100})
    assert last.type == "command.failed"
    assert last.error is not None
    assert last.error.startswith("2 rows have no id")


async def test_planning_without_rows_finds_no_windows() -> None:
    last = await ran(planned(), tool="cursor.plan", document={"input": {}, "size": 100})
    assert last.result["data"] == {"type": "text", "boundaries": [], "counts": [], "rows": 0}


@pytest.mark.parametrize("n", [2**70, float("nan")])
async def test_numbers_beyond_json_do_not_stop_the_worker(n: Any) -> None:
    last = await ran(world(task("a", "t"), t=FakeTool(lambda config, call: ok({"n": n}))))
    assert last.type in ("command.completed", "command.failed")
