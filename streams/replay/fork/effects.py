"""Side effects that a fork would repeat: work that the source has begun, of tasks that write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.model import Playbook, Task
from streams.playbook.repeated_effects import changes_nothing
from streams.playbook.template import fixed_part
from streams.playbook.tool_kinds import USUAL
from streams.replay.fork.point import ForkPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEffect:
    """A task that writes, and how much of its step the source has begun."""

    step: str
    task: str
    kind: str
    commands: int
    frames: int
    rows: int


def repeated_effects(playbook: Playbook, point: ForkPoint) -> tuple[RepeatedEffect, ...]:
    """Return the effects in the order of the playbook; rows are those of committed frames."""
    return tuple(
        RepeatedEffect(
            step=step.name,
            task=task.label,
            kind=task.kind,
            commands=work.get("commands", 0),
            frames=work.get("frames", 0),
            rows=work.get("rows", 0),
        )
        for step in playbook.steps.values()
        if (work := point.work.get(step.name)) is not None
        for task in step.tasks
        if not changes_nothing(task.kind, fixed_config(task))
    )


def fixed_config(task: Task) -> Mapping[str, Json] | None:
    """Return the constant keys of a task's configuration; None if one that decides is not."""
    found = dict(_fixed(task))
    return None if any(is_template for is_template, _ in found.values()) else _values(found)


def _fixed(task: Task) -> Iterator[tuple[str, tuple[bool, Json]]]:
    for key in ("method", "command", "query", "sql", "statement", "commands", "cmds"):
        if key in USUAL.get(task.kind, ()):
            is_fixed, value = fixed_part(task.config, key)
            yield key, (not is_fixed, value)
    for key in ("json", "data", "body", "payload", "form"):
        if task.kind == "http":
            is_fixed, value = fixed_part(task.config, key)
            yield key, (False, value if is_fixed else "a template")


def _values(found: Mapping[str, tuple[bool, Json]]) -> dict[str, Json]:
    return {key: value for key, (_, value) in found.items() if value is not None}
