"""Detection of a document's spelling, by the constructs that only one of them has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.spelling import Spelling
from streams.playbook.yaml_document import Authored, Path, as_list, as_mapping

_SPEC_TOP = ("return", "sink", "credentials", "name", "path")
_SPEC_STEP = ("when", "type", "action", "eval", "on_error", "pool", "sink")
_SPEC_TASK = ("eval", "sink")
_NOETL_TOP = ("keychain", "executor")
_NOETL_STEP = ("input", "output")
_NOETL_TASK = (
    *("set", "output", "output_select", "libs", "script", "return_step", "payload"),
    *("verify_ssl", "timeout_seconds", "commands", "cmds"),
)
_FIRST_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)")
_NOETL_NAMES = ("output", "event", "job")


@dataclass(frozen=True, slots=True)
class Sign:
    """A construct that only one spelling has."""

    path: Path
    what: str


def spelling_of(top: Authored) -> tuple[Spelling, Sign | None]:
    """Return the spelling of a document, and the construct that decides it.

    `metadata.spelling` decides; else the first construct of the specs' spelling, so that what
    was registered before keeps its meaning; else the first of NoETL's; else the specs'.
    """
    chosen = as_mapping(top.get("metadata")).get("spelling")
    if chosen in tuple(Spelling):
        return Spelling(str(chosen)), Sign(("metadata", "spelling"), "metadata.spelling")
    for sign in _spec_signs(top):
        return Spelling.SPEC, sign
    for sign in (*_noetl_signs(top), *_arc_signs(top)):
        return Spelling.NOETL, sign
    return Spelling.SPEC, None


def _steps(top: Authored) -> Iterator[tuple[Path, Authored]]:
    for place, step in enumerate(as_list(top.get("workflow"))):
        if isinstance(step, dict):
            yield ("workflow", place), step


def _tools(step: Authored, path: Path) -> Iterator[tuple[Path, Authored]]:
    tool = step.get("tool")
    if isinstance(tool, dict):
        yield (*path, "tool"), tool
    for place, item in enumerate(as_list(tool)):
        if isinstance(item, dict):
            yield (*path, "tool", place), item


def _keys(holder: Authored, keys: tuple[str, ...], path: Path) -> Iterator[Sign]:
    for key in keys:
        if key in holder:
            yield Sign((*path, key), f"`{key}`")


def _spec_signs(top: Authored) -> Iterator[Sign]:
    if top.get("apiVersion") == "noetl.io/v1":
        yield Sign(("apiVersion",), "noetl.io/v1")
    yield from _keys(top, _SPEC_TOP, ())
    for path, step in _steps(top):
        yield from _keys(step, _SPEC_STEP, path)
        if isinstance(step.get("tool"), str):
            yield Sign((*path, "tool"), "the tool's keys beside `tool`")
        following = step.get("next")
        if isinstance(following, str | list):
            yield Sign((*path, "next"), "`next` without `arcs`")
        for place, arc in enumerate(as_list(as_mapping(following).get("arcs"))):
            yield from _keys(as_mapping(arc), ("args",), (*path, "next", "arcs", place))
        yield from _keys(as_mapping(step.get("loop")), ("frame_policy",), (*path, "loop"))
        for at, tool in _tools(step, path):
            yield from _keys(tool, _SPEC_TASK, at)
            yield from _keys(as_mapping(tool.get("spec")), ("result",), (*at, "spec"))
            if isinstance(step.get("tool"), list) and len(tool) == 1 and "kind" not in tool:
                yield Sign(at, "a labelled task")


def _noetl_signs(top: Authored) -> Iterator[Sign]:
    yield from _keys(top, _NOETL_TOP, ())
    for path, step in _steps(top):
        yield from _keys(step, _NOETL_STEP, path)
        for key in as_mapping(step.get("set")):
            if "." in key:
                yield Sign((*path, "set", key), "a scoped `set`")
        following = as_mapping(step.get("next"))
        yield from _keys(as_mapping(following.get("spec")), ("on_no_match",), (*path, "next"))
        for place, arc in enumerate(as_list(following.get("arcs"))):
            yield from _keys(as_mapping(arc), ("set",), (*path, "next", "arcs", place))
        of_loop = as_mapping(as_mapping(step.get("loop")).get("spec"))
        yield from _keys(of_loop, ("frame", "policy"), (*path, "loop", "spec"))
        for at, tool in _tools(step, path):
            yield from _keys(as_mapping(tool.get("spec")), ("policy",), (*at, "spec"))
            yield from _task_signs(step, tool, at)
    yield from _name_signs(top)


def _arc_signs(top: Authored) -> Iterator[Sign]:
    """Yield where a step leads on by `next.spec`: the weakest sign, as both spellings have it."""
    for path, step in _steps(top):
        yield from _keys(as_mapping(step.get("next")), ("spec",), (*path, "next"))


def _task_signs(step: Authored, tool: Authored, path: Path) -> Iterator[Sign]:
    if isinstance(step.get("tool"), list) and "kind" in tool:
        yield Sign(path, "a task as {name, kind}")
    yield from _keys(tool, _NOETL_TASK, path)
    if tool.get("kind") == "python":
        yield from _keys(tool, ("input",), path)
        code = tool.get("code")
        if isinstance(code, str) and not _has_main(code):
            yield Sign((*path, "code"), "code without `main`")


def _has_main(code: str) -> bool:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return "def main" in code
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(one, functions) and one.name == "main" for one in tree.body)


def _name_signs(top: Authored) -> Iterator[Sign]:
    """Yield templates that read a key of the workload, or a name of NoETL's, without a scope."""
    steps = {str(step.get("step")) for _, step in _steps(top)}
    iterators = {str(as_mapping(step.get("loop")).get("iterator")) for _, step in _steps(top)}
    names = {*as_mapping(top.get("workload")), *_NOETL_NAMES} - steps - iterators
    for path, text in _texts(top.get("workflow"), ("workflow",)):
        for name in _FIRST_NAME.findall(text):
            if name in names:
                yield Sign(path, f"the name `{name}` in a template")


def _texts(value: Json, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "code":
                yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _texts(item, (*path, place))
