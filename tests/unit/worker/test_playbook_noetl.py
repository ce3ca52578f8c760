"""Calls of playbooks in NoETL's spelling: without waiting, for a record, or for the data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from streams.playbook.spelling import Spelling
from streams.worker.port import Config, Outcome
from tests.unit.worker.test_playbook_tool import CALL, PARENT, Stage

NOETL = replace(CALL, spelling=Spelling.NOETL)
CHILD: Config = {"path": "tests/child", "input": {"n": 3}}
WAITS: Config = {**CHILD, "return_step": "end"}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    first = {"path": "tests/parent", "version": 1}
    await made.append(PARENT, "playbook.initialized", meta=first, catalog_id=1)
    made.log.begun.get_nowait()
    yield made
    await made.tool.close()


def data(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


async def test_a_call_without_return_step_does_not_wait(stage: Stage) -> None:
    outcome = await stage.begin(CHILD, NOETL)
    child = stage.log.begun.get_nowait()
    expected = {"status": "started", "execution_id": str(child), "path": "tests/child"}
    assert data(outcome) == {**expected, "async": True}
    assert (await stage.events(child))[0].context == {"workload": {"n": 3}}


async def test_only_a_child_that_is_waited_for_ends_with_its_caller(stage: Stage) -> None:
    await stage.begin(CHILD, NOETL)
    stage.log.begun.get_nowait()
    assert await stage.log.open_children(PARENT) == []
    running = stage.begin(WAITS, replace(NOETL, partition="4.1"))
    waited = await stage.log.begun.get()
    assert await stage.log.open_children(PARENT) == [waited]
    await stage.append(PARENT, "playbook.failed", status="FAILED", error="it failed")
    outcome = await running
    assert outcome.error is not None
    assert outcome.error["kind"] == "playbook.caller"
    assert (await stage.events(waited))[-1].type == "execution.cancelled"


async def test_a_second_attempt_returns_the_child_of_the_first(stage: Stage) -> None:
    first = data(await stage.begin(CHILD, NOETL))
    again = data(await stage.begin(CHILD, replace(NOETL, attempt=2)))
    assert first == again
    stage.log.begun.get_nowait()
    assert stage.log.begun.empty()


async def test_return_step_waits_for_the_status_record(stage: Stage) -> None:
    running = stage.begin(WAITS, NOETL)
    child = await stage.log.begun.get()
    await stage.complete(child, {"sum": 3})
    assert data(await running) == {
        "execution_id": str(child),
        "status": "COMPLETED",
        "path": "tests/child",
        "completed": True,
        "failed": False,
        "error": None,
    }


async def test_a_failed_child_is_a_record_and_no_error(stage: Stage) -> None:
    running = stage.begin(WAITS, NOETL)
    child = await stage.log.begun.get()
    await stage.append(child, "playbook.failed", status="FAILED", error="no such host")
    found = data(await running)
    assert (found["status"], found["completed"], found["failed"]) == ("FAILED", False, True)
    assert found["error"] == "no such host"


async def test_a_child_that_takes_too_long_is_a_record_and_runs_on(stage: Stage) -> None:
    found = data(await stage.begin({**WAITS, "timeout": 0.05}, NOETL))
    child = stage.log.begun.get_nowait()
    assert (found["status"], found["completed"], found["failed"]) == ("RUNNING", False, False)
    assert [one.type for one in await stage.events(child)] == ["playbook.initialized"]


async def test_return_result_gives_the_data_and_an_error_of_a_failed_child(stage: Stage) -> None:
    asked = {**CHILD, "return_result": True}
    running = stage.begin(asked, NOETL)
    await stage.complete(await stage.log.begun.get(), {"sum": 3})
    assert data(await running) == {"sum": 3}
    failing = stage.begin(asked, replace(NOETL, partition="4.1"))
    await stage.append(await stage.log.begun.get(), "playbook.failed", status="FAILED", error="no")
    outcome = await failing
    assert outcome.error is not None
    assert outcome.error["kind"] == "playbook.failed"


async def test_result_step_gives_the_last_value_of_that_step(stage: Stage) -> None:
    running = stage.begin({**CHILD, "result_step": "score"}, NOETL)
    child = await stage.log.begun.get()
    for number, value in ((1, "old"), (2, "new")):
        await stage.append(
            child,
            "command.completed",
            key=str(number),
            node_name="score",
            status="COMPLETED",
            meta={"command_id": str(number), "attempt": 1, "worker": "w"},
            result={"status": "success", "data": value},
        )
    await stage.complete(child, "all")
    assert (await running).data == "new"
    missing = stage.begin({**CHILD, "result_step": "other"}, replace(NOETL, partition="4.1"))
    await stage.complete(await stage.log.begun.get(), "all")
    outcome = await missing
    assert outcome.error is not None
    assert "step 'other' has no result of its own" in str(outcome.error["message"])


async def test_inputs_have_four_names_and_the_newest_version_two(stage: Stage) -> None:
    config: Config = {"path": "tests/child", "workload": {"a": 1, "b": 1}, "args": {"b": 2}}
    config = {**config, "payload": {"c": 3}, "input": {"d": 4}, "version": "latest"}
    await stage.begin(config, NOETL)
    first = (await stage.events(stage.log.begun.get_nowait()))[0]
    assert first.context == {"workload": {"a": 1, "b": 2, "c": 3, "d": 4}}
    assert first.meta["version"] == 2


async def test_an_unregistered_path_fails_the_task_though_nobody_waits(stage: Stage) -> None:
    outcome = await stage.begin({"path": "tests/none"}, NOETL)
    assert outcome.error is not None
    assert outcome.error["kind"] == "playbook.start"
