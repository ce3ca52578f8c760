"""Sinks in a pipeline: what they see, when they run, where their reference goes."""

from __future__ import annotations

from typing import Any

import pytest

from streams.clock import SettableClock
from streams.playbook.parse import parse
from streams.worker.attempt.deferred import Deferral, RowsRefused
from streams.worker.attempt.pipeline import Pipeline
from streams.worker.attempt.row import PipelineRow, RowOutcome
from streams.worker.errors import SaveFailed
from streams.worker.port import Call, Config, Fence, Outcome, Saved
from tests.support.worker.memory import FakeTool, ok
from tests.unit.worker.test_pipeline import CALLER, scope

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: p/q}\nworkflow:\n  - step: load\n"
REFERENCE = {"store": "file", "key": "a"}


def failing(config: Config, call: Call) -> Outcome:
    return Outcome(status="error", error={"kind": "boom", "message": "no"}, data={"a": 1})


async def run(
    body: str, row: PipelineRow | None = None, *, deferral: Any = None, **tools: Any
) -> RowOutcome:
    tasks = parse(HEAD + body).steps["load"].tasks
    tools.setdefault("sink", FakeTool(lambda config, call: ok(REFERENCE)))
    tools.setdefault("noop", FakeTool(lambda config, call: ok({"a": 1})))
    pipeline = Pipeline(
        tasks, tools, CALLER, clock=SettableClock(), give_up_after_s=1.0, deferral=deferral
    )
    return await pipeline.run(row or PipelineRow(0, scope()))


async def test_a_step_keeps_its_result_and_names_where_it_was_persisted() -> None:
    sink = FakeTool(lambda config, call: ok(REFERENCE))
    data = "data: {r: '{{ result }}', d: '{{ data.a }}', s: '{{ this.status }}'}"
    ran = await run(f"    tool: {{kind: noop}}\n    sink: {{storage: file, {data}}}\n", sink=sink)
    assert (ran.status, ran.data, ran.meta["sink"]) == ("success", {"a": 1}, REFERENCE)
    [(config, call)] = sink.calls
    assert config["data"] == {"r": {"a": 1}, "d": 1, "s": "success"}
    assert (call.task, call.partition) == ("sink", "0.1")


async def test_a_step_that_is_only_a_sink_gives_the_reference() -> None:
    ran = await run("    sink: {storage: file, data: 1}\n")
    assert ran.data == REFERENCE


@pytest.mark.parametrize(
    ("on", "fails", "runs"),
    [
        ("success", False, True),
        ("success", True, False),
        ("error", False, False),
        ("error", True, True),
        ("always", False, True),
        ("always", True, True),
    ],
)
async def test_on_says_which_results_are_persisted(on: str, fails: bool, runs: bool) -> None:
    sink = FakeTool(lambda config, call: ok(REFERENCE))
    tool = FakeTool(failing if fails else lambda config, call: ok(1))
    block = f"{{storage: file, on: {on}, data: '{{{{ this }}}}'}}"
    ran = await run(f"    tool: {{kind: noop}}\n    sink: {block}\n", noop=tool, sink=sink)
    assert ran.status == ("error" if fails else "success")
    assert len(sink.calls) == runs
    if fails and runs:
        assert sink.calls[0][0]["data"]["error"]["kind"] == "boom"
        assert ran.error is not None
        assert ran.error["task"] == "load"


async def test_a_sink_whose_when_does_not_hold_does_nothing() -> None:
    sink = FakeTool(lambda config, call: ok(REFERENCE))
    when = "    tool: {kind: noop}\n    sink: {storage: file, when: '{{ result.a > 1 }}'}\n"
    ran = await run(when, sink=sink)
    assert (sink.calls, "sink" in ran.meta) == ([], False)


async def test_a_sink_that_fails_fails_the_step_and_is_named() -> None:
    ran = await run("    tool: {kind: noop}\n    sink: {storage: file}\n", sink=FakeTool(failing))
    assert ran.status == "error"
    assert ran.error == {"kind": "boom", "message": "no", "task": "sink"}


async def test_a_sink_is_tried_again_as_any_task_is() -> None:
    sink = FakeTool(lambda config, call: ok(REFERENCE), first=[failing({}, None)])  # type: ignore[arg-type]
    row = PipelineRow(0, scope())
    rules = "[{expr: \"{{ outcome.status == 'error' }}\", do: retry, delay: 0}]"
    ran = await run(
        f"    tool: {{kind: noop}}\n    sink: {{storage: file, eval: {rules}}}\n", row, sink=sink
    )
    assert (ran.status, row.retries) == ("success", 1)
    assert {call.partition for _, call in sink.calls} == {"0.1"}


async def test_a_sink_of_a_task_runs_right_behind_it_and_later_tasks_can_name_it() -> None:
    seen: list[str] = []

    def note(config: Config, call: Call) -> Outcome:
        seen.append(call.task)
        return ok(config.get("data"))

    body = (
        "    tool:\n"
        "      - a: {kind: noop, data: 1, sink: {storage: file, data: '{{ result }}'}}\n"
        "      - b: {kind: noop, data: ['{{ a_sink.data }}', '{{ _prev.data }}']}\n"
    )
    ran = await run(body, noop=FakeTool(note), sink=FakeTool(note))
    assert seen == ["a", "a_sink", "b"]
    assert ran.data == [1, 1]


class Saver(FakeTool):
    """Refuses the second and the third of what a frame gathers."""

    def target(self, config: Config) -> str:
        return "db"

    async def save(self, batches: Any, saved: Any, spelling: Any) -> Any:
        if len(batches[0][1]) > 2:
            raise SaveFailed("load_sink", "no such column", rows=(1, 2))
        return {}


def gathering(block: str) -> tuple[Deferral, str]:
    fence = Fence(deployment="d", stage_id=1, frame_id=7, task="")
    body = f"    tool: {{kind: noop, sink: {block}}}\n    loop: {{in: [1]}}\n"
    return Deferral(fence, ["load", "load_sink"]), body


async def test_a_sink_to_postgres_waits_for_the_end_of_the_frame() -> None:
    block = "{storage: postgres, auth: pg, table: t, data: {a: '{{ result.a }}'}}"
    deferral, body = gathering(block)
    postgres = Saver()
    ran = await run(body, deferral=deferral, postgres=postgres)
    assert (ran.status, ran.data, postgres.calls) == ("success", {"a": 1}, [])
    assert deferral.counts == {"load_sink": 1}


async def test_a_value_that_is_no_json_waits_as_any_other_does() -> None:
    block = "{storage: postgres, auth: pg, table: t, mode: upsert, key: a}"
    deferral, body = gathering(block)
    rows = [{"a": 2**70}, {"a": "\ud800", "b": 1}, {"a": 3}]
    noop = FakeTool(lambda config, call: ok(rows))
    ran = await run(body, deferral=deferral, postgres=Saver(), noop=noop)
    assert ran.status == "success"
    assert deferral.counts == {"load_sink": 3}
    assert deferral.byte_count > 0


async def test_all_rows_of_a_statement_that_is_refused_are_named() -> None:
    deferral, body = gathering("{storage: postgres, auth: pg, table: t}")
    for number in range(4):
        await run(body, PipelineRow(number, scope()), deferral=deferral, postgres=Saver())
    with pytest.raises(RowsRefused) as refused:
        await deferral.save(Saved(row_count=4))
    assert refused.value.rows == {1, 2}
    deferral.drop(refused.value.rows)
    assert await deferral.save(Saved(row_count=2)) is None


async def test_what_is_no_row_is_an_error_of_the_sink() -> None:
    block = "{storage: postgres, auth: pg, table: t, data: '{{ result.a }}'}"
    ran = await run(f"    tool: {{kind: noop}}\n    sink: {block}\n", postgres=FakeTool())
    assert ran.error is not None
    assert (ran.error["kind"], ran.error["task"]) == ("sink", "sink")
    assert "a table takes a mapping or a list of mappings" in str(ran.error["message"])


async def test_the_playbooks_sink_gives_what_the_last_step_gave() -> None:
    playbook = parse(
        HEAD + "    tool: {kind: noop}\nsink: {storage: file, data: '{{ result.a }}'}\n"
    )
    sink = FakeTool(lambda config, call: ok(REFERENCE))
    pipeline = Pipeline(
        playbook.steps["playbook_sink"].tasks,
        {"sink": sink},
        CALLER,
        clock=SettableClock(),
        give_up_after_s=1.0,
    )
    last = {"status": "success", "data": {"a": 5}, "meta": {}}
    ran = await pipeline.run(PipelineRow(0, scope(load=last, args={"last_step": "load"})))
    assert (ran.data, ran.meta["sink"]) == ({"a": 5}, REFERENCE)
    assert sink.calls[0][0]["data"] == 5


def broken(config: Config, call: Call) -> Outcome:
    return Outcome(status="error", error={"kind": "http.503", "message": "busy"})


@pytest.mark.parametrize("sink", ["when: '{{ result.code == 5 }}'", "data: 1"])
async def test_a_sink_that_fails_behind_a_failed_step_hides_nothing(sink: str) -> None:
    body = f"    tool: {{kind: noop}}\n    sink: {{storage: file, on: error, {sink}}}\n"
    ran = await run(body, noop=FakeTool(broken), sink=FakeTool(failing))
    assert ran.error is not None
    assert (ran.error["kind"], ran.error["task"]) == ("http.503", "load")
    assert str(ran.error["message"]).startswith("busy; and sink failed: ")


async def test_an_error_without_data_is_what_its_sink_reads() -> None:
    sink = FakeTool(lambda config, call: ok(REFERENCE))
    block = "{storage: file, on: error, data: '{{ result.error.kind }}'}"
    await run(f"    tool: {{kind: noop}}\n    sink: {block}\n", noop=FakeTool(broken), sink=sink)
    assert [config["data"] for config, _ in sink.calls] == ["http.503"]


async def test_who_unwraps_a_result_twice_is_told_what_there_is() -> None:
    block = "{storage: file, data: {payload: '{{ result.data }}'}}"
    ran = await run(f"    tool: {{kind: noop}}\n    sink: {block}\n")
    assert ran.error is not None
    assert "'data' is not defined: there is a" in str(ran.error["message"])
