"""Digest of a function's code: what it computes, not how it is laid out.

Comments, docstrings, annotations and line breaks do not count. The body counts, and so does
everything of the package that it refers to: constants, functions and classes, also imported ones.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType

from blake3 import blake3

_PACKAGE = "streams"
_NOT_COUNTED = frozenset(("annotation", "returns", "type_comment", "type_params", "kind", "ctx"))
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def code_digest(function: Callable[..., object]) -> str:
    """Return the digest of a function of a module.

    Raises:
        ValueError: the function is nested or a lambda: its code depends on where it was made.
    """
    name = function.__qualname__
    if not name.isidentifier():
        raise ValueError(f"{name}: must be a function of a module, not nested and not a lambda")
    found: dict[str, str] = {}
    _collect(sys.modules[function.__module__], name, found)
    digest = blake3()
    for code in sorted(found.values()):
        digest.update(f"{code}\0".encode())
    return digest.hexdigest()


def _collect(module: ModuleType, name: str, found: dict[str, str]) -> None:
    """Add the code that defines a name of a module, and what it refers to."""
    where = f"{module.__name__}.{name}"
    if where in found:
        return
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            _collect_import(module, node, name, found)
        elif name in _defined(node):
            code = _normal(node)
            found[where] = found.get(where, "") + code
            for one in sorted(_names(node)):
                _collect(module, one, found)


def _collect_import(
    module: ModuleType, node: ast.Import | ast.ImportFrom, name: str, found: dict[str, str]
) -> None:
    """Add a name that `node` imports; code of other packages counts by its name alone."""
    for one in node.names:
        if (one.asname or one.name).split(".")[0] != name:
            continue
        source = node.module if isinstance(node, ast.ImportFrom) else None
        if source is not None and source.split(".")[0] == _PACKAGE:
            _collect(import_module(source), one.name, found)
        else:
            found[f"{module.__name__}.{name}"] = f"{name} = import {source or ''} {one.name}"


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, _DOCUMENTED):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {one.id for target in node.targets for one in _name_nodes(target)}
    if isinstance(node, ast.AnnAssign):
        return {one.id for one in _name_nodes(node.target)}
    return set()


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in _name_nodes(node)}


def _name_nodes(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names in a node, without those of annotations."""
    if isinstance(node, ast.Name):
        yield node
    for field, value in ast.iter_fields(node):
        if field not in _NOT_COUNTED:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    yield from _name_nodes(one)


def _normal(value: object) -> str:
    """Return a text of a syntax tree that is the same in all versions of Python."""
    if isinstance(value, list):
        return "[" + ",".join(map(_normal, value)) + "]"
    if not isinstance(value, ast.AST):
        return repr(value)
    parts = []
    for field, one in ast.iter_fields(value):
        skipped = field == "body" and isinstance(value, _DOCUMENTED) and _has_docstring(value)
        counted = one[1:] if skipped else one
        if field not in _NOT_COUNTED and counted not in (None, []):
            parts.append(f"{field}={_normal(counted)}")
    return f"{type(value).__name__}({','.join(sorted(parts))})"


def _has_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
