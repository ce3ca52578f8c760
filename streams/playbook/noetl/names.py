"""Warnings of names that nothing defines: in this spelling they are empty, not an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jinja2 import meta, nodes

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.errors import BadTemplate
from streams.playbook.problem import Severity
from streams.playbook.sandbox import sandbox
from streams.playbook.shape import closest
from streams.playbook.template_compiler import NameRules, parse
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping

_ALWAYS = frozenset(
    (
        *("workload", "ctx", "vars", "args", "iter", "step", "execution_id", "job", "keychain"),
        *("output", "event", "results", "loop", "loop_index", "frame", "now"),
        *("_prev", "_task", "_attempt", "__frame_max_rows"),
    )
)
_GUARDS = ("default", "d")
_TESTS = ("defined", "undefined", "none")


def check_names(draft: PlaybookDraft, top: Authored) -> None:
    """Warn of a bare name that no input, step, task, loop or `set` of the document defines.

    A trigger can give any input, so it is not an error. A template that allows for a missing
    name (`default`, `is defined`, a condition) is not reported.
    """
    steps = [as_mapping(step) for step in as_list(top.get("workflow"))]
    known = _ALWAYS | _defined(top, steps)
    for path, _ in draft.mentions:
        if path[0] != "workflow" or path[-1] == "code":
            continue
        text = _at(dict(top), path)
        step = as_mapping(_at(dict(top), path[:2]))
        names = known | _inputs(step)
        for name in sorted(_unguarded(text) - names if isinstance(text, str) else ()):
            near = closest(name, names)
            hint = f"did you mean {near!r}?" if near else "declare it under `workload`"
            what = f"nothing defines {name!r}, so it is empty unless the trigger gives it"
            draft.report(path, what, hint, Severity.WARNING)


def _defined(top: Authored, steps: Sequence[Authored]) -> frozenset[str]:
    found = {*as_mapping(top.get("workload"))}
    for step in steps:
        found.add(str(step.get("step")))
        found.add(str(as_mapping(step.get("loop")).get("iterator", "item")))
        for place, task in enumerate(as_list(step.get("tool"))):
            found.add(str(as_mapping(task).get("name", f"task_{place}")))
        found.update(_set_names(dict(step)))
    return frozenset(found)


def _set_names(value: Json) -> Iterator[str]:
    """Yield the names that any `set` in a step writes, without their scopes."""
    if isinstance(value, list):
        for item in value:
            yield from _set_names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "set" and isinstance(item, dict):
                yield from (name.rpartition(".")[2] for name in item)
                yield from (name.split(".")[1] for name in item if "." in name)
            yield from _set_names(item)


def _inputs(step: Authored) -> frozenset[str]:
    """Return the names that `input` gives to the fields of a step's tools."""
    tool = step.get("tool")
    holders = [step, *map(as_mapping, tool if isinstance(tool, list) else [tool])]
    return frozenset(
        name
        for holder in holders
        for key in ("input", "args")
        for name in as_mapping(holder.get(key))
    )


def _at(value: Json, path: Path) -> Json:
    for key in path:
        if isinstance(value, dict):
            value = value.get(str(key))
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _unguarded(text: str) -> frozenset[str]:
    """Return the names that a template reads without allowing for their absence."""
    try:
        tree = parse(text, NameRules(lenient=True))
    except BadTemplate:
        return frozenset()
    names = meta.find_undeclared_variables(tree) - sandbox(lenient=True).globals.keys()
    return frozenset(names - {one.name for one in _guarded(tree)})


def _guarded(tree: nodes.Template) -> Iterator[nodes.Name]:
    for node in tree.find_all(
        (nodes.Filter, nodes.Test, nodes.CondExpr, nodes.If, nodes.Or, nodes.And)
    ):
        inner: nodes.Node | None
        if isinstance(node, nodes.Filter):
            inner = node.node if node.name in _GUARDS else None
        elif isinstance(node, nodes.Test):
            inner = node.node if node.name in _TESTS else None
        elif isinstance(node, nodes.CondExpr | nodes.If):
            inner = node.test
        else:
            assert isinstance(node, nodes.Or | nodes.And)
            inner = node.left
        if inner is not None:
            yield from _names_in(inner)


def _names_in(node: nodes.Node) -> Iterator[nodes.Name]:
    if isinstance(node, nodes.Name):
        yield node
    yield from node.find_all(nodes.Name)
