"""Detection of saves that a frame may defer and send as one batch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.draft import IN_SINKS
from streams.playbook.model import Do, Rule, Task
from streams.playbook.tool_kinds import SQL_KEYS
from streams.playbook.yaml_document import Authored

_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.S)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.S)
_WRITES = re.compile(r"\b(?:insert|update|delete|merge)\b", re.I)
_WRITE_VERBS = ("insert", "update", "delete", "merge", "with")
_SEPARATE = frozenset(("http", "noop"))
"""Kinds of tasks that do not read what a save of their step has written."""
_ONE_INSERT = re.compile(r"\s*insert\b(?!.*\breturning\b)(?!.*;\s*\S)", re.S | re.I)


def is_lone_insert(kind: str, config: Authored, rules: Sequence[Rule]) -> bool:
    """Return whether a task is one INSERT that returns nothing, with no rule on its outcome."""
    if kind != "postgres" or any(rule.do is Do.RETRY for rule in rules):
        return False
    if any("outcome" in rule_names(rule) for rule in rules):
        return False
    command = next((str(config[key]) for key in SQL_KEYS if key in config), "")
    return bool(_ONE_INSERT.match(_COMMENTS.sub(" ", command)))


def with_deferred(tasks: Sequence[Task], outside: frozenset[str]) -> tuple[Task, ...]:
    """Return the tasks, deferrable only if no template reads their result.

    `outside` are the names that the step's other templates read. With a jump, an earlier task
    may run again later.
    """
    jumps = any(rule.do is Do.JUMP for task in tasks for rule in task.rules)
    made = []
    for place, task in enumerate(tasks):
        later = tasks if jumps else tasks[place + 1 :]
        after = outside.union(
            *(task_names(other) for other in later), *(rule_names(rule) for rule in task.rules)
        )
        read = task.label in after or ("_prev" in after and task.sink is None)
        read = read or any(other.sink.of == task.label for other in tasks if other.sink)
        made.append(replace(task, deferrable=task.deferrable and not read))
    return tuple(made)


def with_row_results(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks of a loop whose rows are read: possible last tasks are not deferred."""
    last = next((task for task in reversed(tasks) if task.sink is None), None)
    return tuple(
        replace(task, deferrable=False)
        if task is last or any(rule.do is Do.BREAK for rule in task.rules)
        else task
        for task in tasks
    )


def is_literal_save(kind: str, config: Authored) -> bool:
    """Return whether a task of NoETL's spelling only writes, in statements without `{% %}`."""
    own = {key: value for key, value in config.items() if key not in (*AUTH_KEYS, "kind", "name")}
    if kind != "postgres" or len(own) != 1 or own.keys().isdisjoint(SQL_KEYS):
        return False
    [command] = own.values()
    if not isinstance(command, str) or "{%" in command or not _WRITES.search(command):
        return False
    plain = _COMMENTS.sub(" ", _EXPRESSION.sub("0", command))
    verbs = [one.split(None, 1)[0].lower() for one in plain.split(";") if one.strip()]
    return bool(verbs) and all(verb in _WRITE_VERBS for verb in verbs)


def with_literal_save(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return the tasks of a loop in NoETL's spelling; only the last may be deferrable.

    Saves before it would be lost with a row that fails later, and other kinds of tasks could
    read in the database what is not written yet.
    """
    if not tasks or not tasks[-1].deferrable:
        return tuple(replace(task, deferrable=False) for task in tasks)
    before, last = [replace(task, deferrable=False) for task in tasks[:-1]], tasks[-1]
    jumps = any(rule.do is Do.JUMP for task in before for rule in task.rules)
    is_alone = not jumps and all(task.kind in _SEPARATE for task in before)
    return (*before, replace(last, deferrable=is_alone))


def task_names(task: Task) -> frozenset[str]:
    """Return the names that a task's templates read."""
    own = task.config.names.union(*(rule_names(rule) for rule in task.rules))
    own |= frozenset() if task.sets is None else task.sets.names
    if task.rate is not None:
        own = own.union(*(part.names for part in task.rate.templates))
    if task.sink is None:
        return own
    parts = (task.sink.when, task.sink.subject)
    return own.union(*(part.names for part in parts if part is not None)) - IN_SINKS


def rule_names(rule: Rule) -> frozenset[str]:
    """Return the names that a rule's templates read."""
    parts = (rule.when, rule.set_iter, rule.set_vars, rule.set_ctx)
    return frozenset().union(*(part.names for part in parts if part is not None))
