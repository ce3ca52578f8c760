"""From a playbook's text to the playbook, with every problem at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streams.playbook.control_flow import check_jumps, check_steps
from streams.playbook.data_flow import check_loops, check_scopes, key_paths_of, with_readers
from streams.playbook.deferred_saves import task_names, with_deferred
from streams.playbook.draft import ALWAYS, IDENTIFIER, IN_PIPELINES, IN_SINKS, PlaybookDraft
from streams.playbook.errors import BadPlaybook
from streams.playbook.expressions import Constant, Template
from streams.playbook.grammar import PLAYBOOK, is_flat
from streams.playbook.loops import loop_of
from streams.playbook.model import Arc, Playbook, Step
from streams.playbook.problem import Problem, Severity
from streams.playbook.sandbox import sandbox
from streams.playbook.shape import check_shape, nearest
from streams.playbook.sinks.auth import with_auth
from streams.playbook.sinks.sink_steps import needs_own_step, with_sinks
from streams.playbook.tasks import configs_of, step_sink, tasks_of
from streams.playbook.yaml_document import Document, Path, read


def parse(text: str, name: str = "playbook", *, clients: bool = True) -> Playbook:
    """Read a playbook; without `clients` it may name what only others have installed.

    Raises:
        BadPlaybook: it has errors; `problems` names all of them.
    """
    playbook, problems = check(text, clients=clients)
    if playbook is None:
        raise BadPlaybook(name, problems)
    return playbook


def check(text: str, *, clients: bool = True) -> tuple[Playbook | None, tuple[Problem, ...]]:
    """Read a playbook and say all that is wrong with it; None where an error is among it."""
    document = read(text)
    if not document.problems and not isinstance(document.value, dict):
        document.report((), "is no mapping", "a playbook begins with `apiVersion: noetl.io/v2`")
    made = _playbook(document, clients) if isinstance(document.value, dict) else None
    problems = tuple(sorted(document.problems, key=lambda one: (one.line, one.column)))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return None, problems
    return made, problems


def _playbook(document: Document, clients: bool) -> Playbook:
    top: dict[str, Any] = document.value
    check_shape(document, PLAYBOOK, top, ())
    metadata = _mapping(top.get("metadata"))
    names = _step_names(document)
    credentials = _credentials(top.get("credentials"))
    draft = PlaybookDraft(document, steps=tuple(names), credentials=credentials, clients=clients)
    pool = str(metadata.get("pool") or "default")
    workbook = _workbook(draft, top.get("workbook"))
    steps = {
        name: _step(draft, top["workflow"][at], at, workbook, pool) for name, at in names.items()
    }
    if not steps:
        draft.report(("workflow",), "has no steps", at_key=True)
    first = "start" if "start" in steps else next(iter(steps), "")
    places: dict[str, Path] = {name: ("workflow", at) for name, at in names.items()}
    own = steps
    if steps:
        check_steps(draft, steps, first, places)
    returns = _returns(draft, top)
    check_loops(draft, steps, places)
    check_scopes(draft, steps, places)
    steps, last = with_sinks(draft, top, steps, places, workbook, returns)
    steps = with_readers(steps, returns)
    draft.steps = tuple(steps)  # templates can name the steps of sinks, too
    draft.check_names(_names_by_step(draft, own, places))
    path = str(metadata.get("path") or top.get("path") or "")
    if not path:
        draft.report(("metadata",), "the playbook has no path", "add metadata: {path: …}")
    return Playbook(
        name=str(metadata.get("name") or top.get("name") or path),
        path=path,
        steps=steps,
        first=first,
        workload=_mapping(top.get("workload")),
        returns=returns,
        credentials=credentials,
        pool=pool,
        last=last,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _step_names(document: Document) -> dict[str, int]:
    """Return the steps with their places; of two with one name, the first."""
    workflow = document.value.get("workflow")
    found: dict[str, int] = {}
    for place, step in enumerate(workflow if isinstance(workflow, list) else ()):
        name = step.get("step") if isinstance(step, dict) else None
        if isinstance(name, str) and found.setdefault(name, place) != place:
            document.report(("workflow", place, "step"), f"step {name!r} is there twice")
    return found


def _step(
    draft: PlaybookDraft,
    step: Mapping[str, Any],
    place: int,
    workbook: Mapping[str, Any],
    pool: str,
) -> Step:
    path: Path = ("workflow", place)
    name = str(step["step"])
    _check_name(draft, name, path)
    if "result" in _mapping(step.get("spec")) and not is_flat(step):
        what = "says nothing here; a step may have many tasks"
        at: Path = (*path, "spec", "result")
        draft.report(at, what, "put it into `spec` of a task", Severity.WARNING, at_key=True)
    loop = loop_of(draft, step, path)
    arcs, inclusive = _arcs(draft, step.get("next"), (*path, "next"))
    sets = draft.changes(path, step, "set")
    outside = _names([sets, *(arc.when for arc in arcs), *(arc.args for arc in arcs)])
    tasks = tasks_of(draft, step, path, workbook)
    check_jumps(draft, [task for task in tasks if task.sink is None], (*path, "tool"))
    if isinstance(sink := step.get("sink"), dict) and not needs_own_step(loop, tasks):
        labels = [task.label for task in tasks]
        sink = with_auth(draft, sink, configs_of(step, workbook), (*path, "sink"))
        tasks = (*tasks, step_sink(draft, sink, (*path, "sink"), labels))
    tasks = with_deferred(tasks, outside)
    if loop is not None and not tasks:
        draft.report((*path, "loop"), "a loop without a tool does nothing", at_key=True)
    reads = frozenset().union(*(task_names(task) for task in tasks))
    if loop is not None and loop.cursor is not None:
        reads |= loop.cursor.config.names
    return Step(
        name=name,
        tasks=tasks,
        when=draft.optional_condition(path, step),
        loop=loop,
        arcs=arcs,
        inclusive=inclusive,
        sets=sets,
        on_error=str(step.get("on_error", "fail")),
        pool=str(step.get("pool") or pool),
        reads=reads,
        key_paths=key_paths_of(tasks, loop),
        line=draft.document.marks[path].line,
    )


def _check_name(draft: PlaybookDraft, name: str, path: Path) -> None:
    at = (*path, "step")
    if name in (*ALWAYS, *IN_PIPELINES, *sandbox().globals):
        draft.report(at, f"{name!r} means something else in templates", "choose another name")
    elif name in IN_SINKS:
        what = f"templates of sinks read {name!r} as what they persist, not as this step"
        draft.report(at, what, "choose another name", Severity.WARNING)
    elif not re.fullmatch(IDENTIFIER, name):
        hint = "use letters, digits and _, so that templates can name its result"
        draft.report(at, f"{name!r} is no name for a step", hint)


def _arcs(draft: PlaybookDraft, value: Any, path: Path) -> tuple[tuple[Arc, ...], bool]:
    """Return the ways out of a step, and whether all that hold are taken."""
    inclusive, items, at = False, value, path
    if isinstance(value, dict):
        inclusive = _mapping(value.get("spec")).get("mode") == "inclusive"
        items, at = value.get("arcs"), (*path, "arcs")
    if isinstance(items, str):
        return (_arc(draft, {"step": items}, at, at),), inclusive
    made = []
    for place, item in enumerate(items if isinstance(items, list) else ()):
        here = (*at, place)
        if isinstance(item, str):
            made.append(_arc(draft, {"step": item}, here, here))
        elif isinstance(item, dict) and isinstance(item.get("step"), str):
            made.append(_arc(draft, item, here, (*here, "step")))
    return tuple(made), inclusive


def _arc(draft: PlaybookDraft, arc: Mapping[str, Any], path: Path, at: Path) -> Arc:
    name = arc["step"]
    if name not in draft.steps:
        hint = nearest(name, draft.steps)
        if hint is None and name == "end":
            hint = "leave `next` out where the playbook ends"
        draft.report(
            at, f"there is no step {name!r}", hint or f"there are {', '.join(draft.steps)}"
        )
    if isinstance(args := arc.get("args"), dict):
        draft.given.setdefault(name, set()).update(args)
    return Arc(
        step=name,
        when=draft.optional_condition(path, arc),
        args=draft.changes(path, arc, "args"),
    )


def _workbook(draft: PlaybookDraft, value: Any) -> dict[str, dict[str, Any]]:
    """Return the named actions as tasks."""
    found: dict[str, dict[str, Any]] = {}
    listed = enumerate(value) if isinstance(value, list) else ()
    items = value.items() if isinstance(value, dict) else listed
    for key, action in items:
        if not isinstance(action, dict):
            continue
        name = key if isinstance(value, dict) else action.get("name")
        path: Path = ("workbook", key)
        if not isinstance(name, str):
            draft.report(path, "an action needs a name")
            continue
        if name in found:
            draft.report(path, f"action {name!r} is there twice")
        found[name] = _action(action)
    return found


def _action(action: Mapping[str, Any]) -> dict[str, Any]:
    rest = {
        key: item for key, item in action.items() if key not in ("name", "tool", "type", "desc")
    }
    tool = action.get("tool")
    if isinstance(tool, dict):
        return {**rest, **tool}
    kind = tool or action.get("type") or action.get("kind")
    return {**rest, "kind": kind}


def _credentials(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return {alias: str(name) for alias, name in value.items()}
    found = {}
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            found[item] = item
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            found[str(item.get("as", item["name"]))] = item["name"]
    return found


def _returns(draft: PlaybookDraft, top: Mapping[str, Any]) -> Template | None:
    value = top.get("return")
    if value is None:
        return None
    made = draft.template(("return",), value)
    if (isinstance(value, dict) and not {"status", "data"} <= value.keys()) or isinstance(
        made, Constant
    ):
        what = "it has no envelope, so it is wrapped as {status, data, meta}"
        draft.report(("return",), what, None, Severity.NOTE, at_key=True)
    return made


def _names(templates: Sequence[Template | None]) -> frozenset[str]:
    return frozenset().union(*(one.names for one in templates if one is not None))


def _names_by_step(
    draft: PlaybookDraft, steps: Mapping[str, Step], places: Mapping[str, Path]
) -> dict[Path, frozenset[str]]:
    """Return what templates of each step can read beside what all can."""
    found = {}
    for name, step in steps.items():
        names = {*IN_PIPELINES, *draft.given.get(name, ()), *(task.label for task in step.tasks)}
        found[places[name]] = frozenset(names | ({step.loop.iterator} if step.loop else set()))
    return found
