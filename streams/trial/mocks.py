"""Mocks: given answers in place of a step's tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from streams.events.model import Json
from streams.playbook.model import Playbook, Rule, Step, Task
from streams.playbook.template import Constant
from streams.trial.errors import BadTrial
from streams.trial.playbooks import FilePlaybooks
from streams.worker.port import Call, Config, Outcome

KIND = "mock"


@dataclass(frozen=True, slots=True)
class StepMock:
    """Answers for one step, or for one task of it; the last one repeats."""

    step: str
    answers: tuple[Outcome, ...]
    task: str | None = None


def mock_of(name: str, value: Json, steps: Collection[str]) -> StepMock:
    """Return the mock for a step, or for one task of it: `step.task`.

    A mapping with only `result` or `error` is one outcome; `{answers: [...]}` lists one for each
    call; anything else is the result itself.

    Raises:
        BadTrial: an error is neither text nor a mapping.
    """
    step, _, task = (name, "", "") if name in steps else name.rpartition(".")
    step = step or name
    many = value.get("answers") if isinstance(value, dict) and len(value) == 1 else None
    answers = many if isinstance(many, list) and many else [value]
    return StepMock(step, tuple(_outcome(name, one) for one in answers), task or None)


def _outcome(name: str, value: Json) -> Outcome:
    if not isinstance(value, dict) or len(value) != 1:
        return Outcome(status="success", data=value)
    if "result" in value:
        return Outcome(status="success", data=value["result"])
    if "error" not in value:
        return Outcome(status="success", data=value)
    error = value["error"]
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        raise BadTrial(f"mock {name}: `error` is text or a mapping with `kind` and `message`")
    # Fields of the tool, such as {http: {status: 503}}, are what rules read.
    detail = {key: one for key, one in error.items() if isinstance(one, dict)}
    plain = {key: one for key, one in error.items() if key not in detail}
    return Outcome(
        status="error", error={"kind": KIND, "message": "mocked", **plain}, detail=detail
    )


class MockTool:
    """Answers calls of mocked steps."""

    def __init__(self, mocks: Sequence[StepMock]) -> None:
        self._mocks = {(mock.step, mock.task): mock for mock in mocks}
        self._counts: dict[tuple[str, str | None], int] = {}

    async def run(self, config: Config, call: Call) -> Outcome:
        """Return the next answer for the step, or for the task."""
        key: tuple[str, str | None] = (call.step, call.task)
        if key not in self._mocks:
            key = (call.step, None)
        answers, count = self._mocks[key].answers, self._counts.get(key, 0)
        self._counts[key] = count + 1
        return answers[min(count, len(answers) - 1)]

    async def close(self) -> None:
        """Do nothing."""


class MockedPlaybooks:
    """Playbooks from files, with mocks in the tried one."""

    def __init__(self, playbooks: FilePlaybooks, mocks: Sequence[StepMock]) -> None:
        self._playbooks = playbooks
        self._mocked = with_mocks(playbooks.main, mocks)

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return a playbook."""
        found = await self._playbooks.get(catalog_id, version)
        return self._mocked if found is self._playbooks.main else found

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path."""
        return await self._playbooks.resolve(tenant_id, organization_id, path, version)


def planned_mocks(playbook: Playbook, mocks: Sequence[StepMock]) -> list[StepMock]:
    """Return the mocks of steps that the planner runs itself: calls of playbooks.

    It reads all other steps unchanged, so that it writes the same events.
    """
    return [
        mock
        for mock in mocks
        if (step := playbook.steps.get(mock.step)) is not None and step.is_playbook
    ]


def with_mocks(playbook: Playbook, mocks: Sequence[StepMock]) -> Playbook:
    """Return a playbook whose mocked tasks are of the kind `mock`.

    Raises:
        BadTrial: a mock names a step or task that does not exist, or that runs nothing.
    """
    steps = dict(playbook.steps)
    for mock in mocks:
        step = steps.get(mock.step)
        if step is None:
            known = ", ".join(playbook.steps)
            raise BadTrial(f"mock {mock.step}: no such step; the playbook has {known}")
        steps[mock.step] = _mocked(step, mock)
    return replace(playbook, steps=steps)


def _mocked(step: Step, mock: StepMock) -> Step:
    tasks = [task for task in step.tasks if task.sink is None]
    if not tasks:
        raise BadTrial(f"mock {mock.step}: the step runs no task")
    if mock.task is None:
        # One answer for the whole pipeline: as its last task's, which is the step's result.
        return replace(step, tasks=(replace(_answered(tasks[-1]), rules=_rules(tasks)),))
    if mock.task not in {task.label for task in tasks}:
        labels = ", ".join(task.label for task in tasks)
        raise BadTrial(f"mock {mock.step}.{mock.task}: no such task; the step has {labels}")
    return replace(
        step,
        tasks=tuple(_answered(task) if task.label == mock.task else task for task in step.tasks),
    )


def _rules(tasks: Sequence[Task]) -> tuple[Rule, ...]:
    """Return the rules of the only task; those of a pipeline name tasks that do not run."""
    return tasks[0].rules if len(tasks) == 1 else ()


def _answered(task: Task) -> Task:
    return replace(task, kind=KIND, config=Constant({}), deferrable=False)
