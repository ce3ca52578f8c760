"""Finds what an earlier attempt at a frame saved, before anything is done again."""

from __future__ import annotations

from collections.abc import Mapping

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.model import Step
from streams.worker.attempt.deferred import Deferral, last_of
from streams.worker.attempt.task_call import saver_of
from streams.worker.port import Config, Saved, Tool


class _Unknown(dict[str, object]):
    """Stands for a result that is not there yet; everything asked of it is the same."""

    def __missing__(self, key: str) -> _Unknown:
        return _Unknown()


async def find_saved(
    step: Step, scope: Mapping[str, object], deferral: Deferral, tools: Mapping[str, Tool]
) -> Saved | None:
    """Return the last save of an earlier attempt, if it can be found now.

    This comes before the rows are read, because a claim that is asked again after its rows
    were saved gives other rows. Where a task's database depends on what a row holds, None:
    the save itself will find the fence then, and nothing is written twice either way.
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
    """Return the names that only a row gives a meaning to."""
    iterator = [step.loop.iterator] if step.loop is not None else []
    labels = [task.label for task in step.tasks]
    return [*labels, *iterator, "iter", "vars", "outcome", "_prev", "_loop", step.name]


def _config(config: Json) -> Config:
    if not isinstance(config, dict):
        raise Refused("no configuration")
    return config
