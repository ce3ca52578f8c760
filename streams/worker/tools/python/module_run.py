"""Execution of authors' code as a module with global inputs, as NoETL's spelling defines it.

It imports only the standard library: it is part of the child process.
"""

from __future__ import annotations

import ast
import asyncio
import datetime
import inspect
import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from types import CodeType

SOURCE = "<playbook>"
_LEAVE = "__leave_module__"
_MODULES: Mapping[str, object] = {"json": json, "os": os, "datetime": datetime, "uuid": uuid}
_ANSWERS = frozenset(("result", "main"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRun:
    """Code and the values of its globals.

    `libs` is {alias: module} or {alias: {from, import}}; `context` is the mapping that the
    code reads by that name.
    """

    code: str
    inputs: Mapping[str, object]
    context: Mapping[str, object]
    libs: Mapping[str, object]


class _Left(BaseException):
    """A `return` at module level; not an Exception, so that authors' handlers pass it on."""

    def __init__(self, value: object = None) -> None:
        super().__init__(value)
        self.value = value


class _Returns(ast.NodeTransformer):
    """Replaces each `return` outside of functions by a raise of `_Left`."""

    def visit_Return(self, node: ast.Return) -> ast.Raise:
        values = [] if node.value is None else [node.value]
        call = ast.Call(func=ast.Name(id=_LEAVE, ctx=ast.Load()), args=values, keywords=[])
        return ast.fix_missing_locations(ast.copy_location(ast.Raise(exc=call), node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


@lru_cache(maxsize=256)
def _compiled(code: str) -> CodeType:
    return compile(_Returns().visit(ast.parse(code, SOURCE)), SOURCE, "exec")


def run_module(run: ModuleRun) -> object:
    """Return the global `result`, or else what `main` returns, or a `return` at module level."""
    space = _globals(run)
    before = space.get("result", space)
    try:
        exec(_compiled(run.code), space)  # noqa: S102 - that is what this process is for
    except _Left as left:
        return left.value
    if (result := space.get("result", space)) is not before:
        return result
    main = space.get("main")
    if not callable(main):
        return space.get("result")
    answer = main(**_arguments(main, run))
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def _globals(run: ModuleRun) -> dict[str, object]:
    """Return the globals; an input wins over modules, and these over the context's keys."""
    names = {name: one for name, one in run.context.items() if name not in _ANSWERS}
    return {
        **names,
        **_MODULES,
        "context": run.context,
        "input_data": run.inputs,
        **run.inputs,
        **{alias: _library(alias, given) for alias, given in run.libs.items()},
        "__name__": "playbook",
        _LEAVE: _Left,
    }


def _library(alias: str, given: object) -> object:
    """Import what `libs` names.

    Raises:
        ImportError: it is not installed in the worker's environment, or it is not a name.
    """
    if isinstance(given, str):
        return import_module(given)
    source, name = (given.get("from"), given.get("import")) if isinstance(given, dict) else (0, 0)
    if not isinstance(source, str) or not isinstance(name, str):
        raise ImportError(f"libs.{alias} must be a module's name, or {{from, import}}")
    try:
        return getattr(import_module(source), name)
    except AttributeError:
        return import_module(f"{source}.{name}")


def _arguments(main: Callable[..., object], run: ModuleRun) -> dict[str, object]:
    """Return those values that the signature of `main` names, all inputs for `**names`."""
    wholes = dict.fromkeys(("args", "input", "input_data"), run.inputs)
    known: dict[str, object] = {**run.context, "context": run.context, **wholes, **run.inputs}
    chosen: dict[str, object] = {}
    for name, parameter in inspect.signature(main).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            return {**run.inputs, **chosen}
        if parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if name in known:
            chosen[name] = known[name]
        elif parameter.default is parameter.empty:
            raise TypeError(f"main() needs {name!r}; give it under 'input' of the task")
    return chosen
