"""Lookup of an earlier attempt's save of the same frame."""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.model import Step
from streams.worker.attempt.deferred import Deferral, last_of
from streams.worker.attempt.task_call import saver_of
from streams.worker.port import Config, Saved, Tool


class _Unknown(dict[str, object]):
    """Placeholder of a missing result; so are all its fields."""

    def __missing__(self, key: str) -> _Unknown:
        return _Unknown()


async def find_saved(
    step: Step, scope: Mapping[str, object], deferral: Deferral, tools: Mapping[str, Tool]
) -> Saved | None:
    """Return the last save of an earlier attempt, if it can be looked up now.

    This runs before the rows are read, because a claim repeated after its rows were saved
    returns other rows. None where a task's database depends on the row: the save itself then
    finds the fence, and nothing is written twice either way.
    """
    blank = {**scope, **dict.fromkeys(_names(step), _Unknown())}
    for task in step.tasks:
        saver = saver_of(task, tools)
        if saver is None:
            continue
        try:
            template = task.config if task.sink is None else task.sink.address
            config = _config(template.render(blank))
            found = await saver.find(config, [deferral.fence(task.label)])
        except Refused:
            continue
        if (saved := last_of(found)) is not None:
            return saved
    return None


def _names(step: Step) -> list[str]:
    """Return the names that are defined per row."""
    iterator = [step.loop.iterator] if step.loop is not None else []
    labels = [task.label for task in step.tasks]
    return [*labels, *iterator, "iter", "vars", "outcome", "_prev", "_loop", step.name]


def _config(config: Json) -> Config:
    if not isinstance(config, dict):
        raise Refused("the configuration is not a mapping")
    return config
