"""Whatever tasks leave, their event has room for it: the step does not fail after its work."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streams.events.seal import INLINE_MAX_BYTES
from streams.playbook.data_flow import key_paths_of
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Step
from streams.playbook.problem import Severity
from streams.playbook.result_policy import MOST_PREVIEW_BYTES, policy_of
from streams.playbook.views import result_view
from streams.playbook.yaml_document import Document
from streams.results.limits import META_BYTES
from streams.results.spill import encode_result
from streams.worker.attempt.command import CommandRunner
from streams.worker.attempt.result_meta import serialize_meta
from streams.worker.tools.artifact import ArtifactTool
from streams.worker.tools.python.tool import PythonTool
from tests.support.planner.with_worker import whole
from tests.support.worker.memory import FakeTool, World, ok, rule, task

STORED = "{result: {store: s3, select: [{path: $.a, as: a}]}}"
WIDE = {"a": "x" * 7_000, "b": "y" * 40_000}


def world(*tasks: Any, **tools: Any) -> World:
    step = Step(name="once", tasks=tasks, key_paths=key_paths_of(tasks, None))
    return World(step, {"t": FakeTool(), **tools})


async def ran(here: World, **options: Any) -> Any:
    await CommandRunner(here.ports, here.options(**options)).run(await here.command())
    return await here.last()


def pipeline(count: int, spec: str, reads: str) -> str:
    tasks = "\n".join(f"      - t{n}: {{kind: http, spec: {spec}}}" for n in range(count))
    return f"""
metadata: {{path: tests/a}}
workflow:
  - step: fetch
    tool:
{tasks}
      - last: {{kind: noop}}
    next: [{{step: use, when: "{{{{ fetch.t1.a | length == 7000 }}}}"}}]
  - step: use
    tool: {{kind: noop, data: "{{{{ {reads} }}}}"}}
return: "{{{{ use.data }}}}"
"""


@pytest.mark.parametrize("count", [2, 5, 40])
async def test_selected_fields_of_many_tasks_are_read_wherever_they_are(count: int) -> None:
    reads = " + ".join(f"(fetch.t{n}.a | length)" for n in range(count))
    text = pipeline(count, STORED, f"[{reads}, fetch.t0.b | length]")
    async with whole(text, http=FakeTool(lambda *_: ok(WIDE))) as made:
        plan = await made.result()
        (event,) = [e for e in await made.events("command.completed") if e.node_name == "fetch"]
    assert (plan.status, plan.result["data"]) == ("COMPLETED", [7_000 * count, 40_000]), plan.error
    assert ("tasks_elsewhere" in event.result) is (count > 7)
    assert len(encode_result(event.result)) <= INLINE_MAX_BYTES


@pytest.mark.parametrize(
    ("reads", "found"),
    [
        ("fetch.get('t0', {}).get('a', 'LOST') | length", 7_000),
        ("fetch.keys() | select('equalto', 't0') | list", ["t0"]),
        ("(fetch.items() | selectattr(0, 'equalto', 't0') | list)[0][1].a | length", 7_000),
        ("(fetch.values() | selectattr('a', 'defined') | list | length)", 40),
    ],
)
async def test_the_methods_of_a_mapping_find_tasks_wherever_they_are(
    reads: str, found: Any
) -> None:
    every = ", ".join(f"fetch.t{n}.status" for n in range(40))
    text = pipeline(40, STORED, reads).replace("fetch.t1.a | length == 7000", f"[{every}]")
    async with whole(text, http=FakeTool(lambda *_: ok(WIDE))) as made:
        plan = await made.result()
    assert (plan.status, plan.result["data"]) == ("COMPLETED", found), plan.error


async def test_only_tasks_that_are_read_are_told() -> None:
    tasks = [task(f"t{n}", "t", {}, spec={"result": {"store": "s3"}}) for n in range(60)]
    here = world(*tasks, replace(task("last", "t"), is_read=True))
    last = await ran(here)
    assert last.result["tasks"] == {"last": None}
    assert len(await here.events("result.stored")) == 60


async def test_an_event_has_room_for_the_most_of_everything() -> None:
    wide = {f"k{n}": "x" * 70 for n in range(500)}
    spec: dict[str, Any] = {"result": {"store": "s3", "preview_max_bytes": 4096}}
    spec["result"]["select"] = [{"path": "$.k1", "as": "k1"}]
    tool = FakeTool(lambda *_: ok(wide, meta={f"m{n}": "x" * 500 for n in range(100)}))
    tasks = [task(f"t{n}", "t", {}, spec=spec, is_read=True) for n in range(80)]
    changes = {"ctx": "x" * 100_000, **{f"name-{n:04}": "x" * 100 for n in range(1_000)}}
    change = task("set", "n", {}, rule(None, "continue", set_ctx=changes))
    small = FakeTool(lambda *_: ok("y" * 32_000))
    here = world(*tasks, change, task("last", "n", {}), t=tool, n=small)
    last = await ran(here)
    assert last.type == "command.completed", last.error
    assert set(last.result["tasks_elsewhere"][0]["names"]) | last.result["tasks"].keys() == {
        f"t{n}" for n in range(80)
    }


async def test_a_result_that_leaves_its_event_keeps_its_policy() -> None:
    store = {"kind": "auto", "ttl": "1h", "scope": "step", "compression": "gzip"}
    page = task("page", "t", {}, spec={"result": {"store": store}}, is_read=True)
    here = world(page, task("last", "n"), t=FakeTool(lambda *_: ok("x" * 20_000)), n=FakeTool())
    last = await ran(here)
    (stored,) = await here.events("result.stored")
    assert stored.event_time + timedelta(hours=1) == here.clock.now() + timedelta(hours=1)
    assert (stored.meta["scope"], stored.meta["store"]) == ("step", "kv")
    assert stored.result["expires_at"] is not None
    assert stored.result["meta"]["compression"] == "gzip"
    assert last.result["tasks"]["page"]["ref"] == stored.result


@pytest.mark.parametrize("is_read", [False, True])
async def test_the_name_of_what_was_put_is_the_objects_however_little_events_carry(
    is_read: bool,
) -> None:
    put = replace(task("scan", "artifact", {"action": "put", "data": "hello"}), is_read=is_read)
    for rest in ((), (task("end", "t"),)):
        here = world(put, *rest)
        here.tools["artifact"] = ArtifactTool(here.payloads)
        last = await ran(here, inline_bytes=100)
        (stored,) = await here.events("result.stored")
        view = result_view(last.result)
        if is_read:
            assert view["scan"]["_ref"] == stored.result["ref"]
        if not rest:
            assert view["_ref"] == stored.result["ref"]


async def test_a_first_look_is_bounded_whoever_asks_for_more() -> None:
    spec = {"result": {"store": "s3", "preview_max_bytes": 1_000_000}}
    document = Document()
    policy = policy_of(PlaybookDraft(document), spec, ())
    (problem,) = document.problems
    assert (problem.severity, "at most 4096" in problem.message) == (Severity.WARNING, True)
    for data in ("x" * 3_000_000, {"a": {"k" * 100_000: 1, "b": "x" * 500}}, ["\t" * 100] * 9):
        page = task("page", "t", {}, result=policy)
        here = world(page, t=FakeTool(lambda *_, data=data: ok(data)))
        last = await ran(here)
        assert last.type == "command.completed"
        assert last.result["ref"]["preview"] is not None
        assert len(encode_result(last.result["ref"]["preview"])) <= MOST_PREVIEW_BYTES


async def test_meta_is_told_as_far_as_an_event_can() -> None:
    metas: list[dict[str, Any]] = [
        {"x": "y" * 100_000},
        {"log": "a\0b\ud800"},
        {"a\0": {"b": ["\0", 1]}},
        {f"k{n}": "x" * 100 for n in range(1_000)},
        {"k" * 100_000: 1},
    ]
    for meta in metas:
        here = world(task("page", "t"), t=FakeTool(lambda *_, meta=meta: ok(1, meta=meta)))
        last = await ran(here)
        assert last.type == "command.completed", last.error
        assert len(encode_result(last.result["meta"])) <= 2 * META_BYTES
    assert serialize_meta({"log": "a\0b", "n": 1}) == {"log": "a\N{REPLACEMENT CHARACTER}b", "n": 1}
    assert str(serialize_meta({"x": "y" * 100_000})["x"]).endswith("… (100000 characters)")


@pytest.mark.parametrize(
    ("code", "status", "log"),
    [
        ("print('a\\0b', '\\ud800')", "completed", "a\N{REPLACEMENT CHARACTER}b"),
        ("return '\\ud800'", "failed", None),
        ("raise ValueError('\\ud800')", "failed", None),
    ],
)
async def test_what_python_says_can_be_told(code: str, status: str, log: str | None) -> None:
    tool = PythonTool(in_process=True)
    here = world(task("page", "python", {"code": f"def main():\n    {code}"}), python=tool)
    last = await ran(here)
    assert last.type == f"command.{status}"
    assert "internal" not in str(last.error)
    if log is not None:
        assert last.result["meta"]["log"].startswith(log)
