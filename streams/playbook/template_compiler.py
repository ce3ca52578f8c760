"""Compiler of templates to functions that yield their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateSyntaxError, meta, nodes
from jinja2.visitor import NodeTransformer

from streams.playbook.errors import BadTemplate
from streams.playbook.sandbox import TemplateContext, sandbox

_NOT_OURS = (
    nodes.Macro,
    nodes.CallBlock,
    nodes.Block,
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.ScopedEvalContextModifier,
)
Run = Callable[[TemplateContext], Iterator[object]]
KeyPath = tuple[str, ...]
"""A name and the keys a template reads below it: `a.b["c"]` is ("a", "b", "c")."""
_PLACE = re.compile(r"\[(-?\d{1,9}|)\]", re.ASCII)
_ONE_OF = {"first": "[0]", "last": "[-1]", "length": "[]", "count": "[]"}


_SELF = ("data", "result")


@dataclass(frozen=True, slots=True)
class NameRules:
    """How templates read names; the default is the spec's spelling."""

    lenient: bool = False
    """An undefined name is empty, not an error."""
    values: frozenset[str] = frozenset()
    """Names of plain values: `.data` and `.result` are the value itself unless it has such keys."""


STRICT = NameRules()


class _PlainValues(NodeTransformer):
    """Makes `.data` and `.result` of plain values the value itself."""

    def __init__(self, values: frozenset[str]) -> None:
        self._values = values

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._part(node, node.node, node.attr)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        key = node.arg.value if isinstance(node.arg, nodes.Const) else None
        return self._part(node, node.node, key)

    def _part(self, node: nodes.Node, inner: nodes.Node, key: object) -> nodes.Node:
        is_value = isinstance(inner, nodes.Name) and inner.name in self._values
        if not is_value or key not in _SELF:
            return node
        name = nodes.Const(key, lineno=node.lineno)
        return nodes.Filter(inner, "_part", [name], [], None, None, lineno=node.lineno)


class _Guarded(NodeTransformer):
    """Adds limits to operations that jinja does not limit."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_watched")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_concat")


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def parse(text: str, rules: NameRules = STRICT) -> nodes.Template:
    """Parse a template.

    Raises:
        BadTemplate: it is not a valid template, or uses unsupported statements.
    """
    try:
        tree = sandbox(lenient=rules.lenient).parse(text)
    except TemplateSyntaxError as error:
        raise BadTemplate(text, error.message or "cannot be read", line=error.lineno) from error
    for node in tree.find_all(_NOT_OURS):
        raise BadTemplate(text, f"{{% {type(node).__name__.lower()} %}} is not part of playbooks")
    return tree


def compile_tree(
    text: str, tree: nodes.Template, rules: NameRules = STRICT
) -> tuple[Run, frozenset[KeyPath]]:
    """Return the function that yields the template's values, and the key paths it reads.

    Raises:
        BadTemplate: it uses an unknown filter or test.
    """
    environment = sandbox(lenient=rules.lenient)
    tree.set_environment(environment)
    try:
        names = meta.find_undeclared_variables(tree) - environment.globals.keys()
        key_paths = frozenset(key_path for key_path in _key_paths(tree) if key_path[0] in names)
        tree = _Guarded().visit(_PlainValues(rules.values).visit(tree))
        source = environment._generate(tree, None, None, defer_init=False)
        namespace: dict[str, Any] = {"environment": environment}
        exec(compile(source, "<template>", "exec"), namespace)  # noqa: S102
    except TemplateSyntaxError as error:
        raise BadTemplate(text, error.message or "cannot be read", line=error.lineno) from error
    return namespace["root"], key_paths


def keys_of(node: nodes.Node, *, or_got: bool = False) -> KeyPath:
    """Return the key path of a node, or nothing if it is something else.

    With `or_got`, `.get("key")` counts as a key as well, although it may return a default.
    """
    keys: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            if not isinstance(node.arg.value, str):
                return ()
            keys.append(node.arg.value)
        elif or_got and (key := _got(node)) is not None:
            keys.append(key)
            node = node.node  # type: ignore[attr-defined]
        else:
            return ()
        node = node.node  # type: ignore[attr-defined]
    return (node.name, *reversed(keys))


def _got(node: nodes.Node) -> str | None:
    """Return the key of `.get("key")`, with a default or without."""
    if not isinstance(node, nodes.Call) or not isinstance(node.node, nodes.Getattr):
        return None
    key = node.args[0] if node.node.attr == "get" and node.args else None
    return key.value if isinstance(key, nodes.Const) and isinstance(key.value, str) else None


def list_positions(key: str) -> tuple[int, ...] | None:
    """Return the list positions of the last key of a path; None: it is a plain key."""
    found = _PLACE.fullmatch(key)
    if found is None:
        return None
    return (int(found[1]),) if found[1] else ()


def _into_list(node: nodes.Node) -> KeyPath:
    """Return a path that ends with `[0]`, a position in a list, or `[]`, only its length."""
    if isinstance(node, nodes.Getitem):
        arg, sign = node.arg, 1
        if isinstance(arg, nodes.Neg):
            arg, sign = arg.node, -1
        place = arg.value if isinstance(arg, nodes.Const) else None
        mark = f"[{sign * place}]" if type(place) is int else None
    elif isinstance(node, nodes.Filter) and not (node.args or node.kwargs):
        mark = _ONE_OF.get(node.name)
    else:
        return ()
    key_path = keys_of(node.node, or_got=True) if mark is not None and node.node is not None else ()
    return (*key_path, mark) if mark is not None and len(key_path) > 1 else ()


def _key_paths(node: nodes.Node) -> Iterator[KeyPath]:
    """Yield every key path in a tree, each up to its first dynamic key."""
    if key_path := keys_of(node, or_got=True) or _into_list(node):
        yield key_path
        yield from _defaults(node)
        return
    for child in node.iter_child_nodes():
        yield from _key_paths(child)


def _defaults(node: nodes.Node) -> Iterator[KeyPath]:
    """Yield the key paths in the defaults of `.get("key", …)`."""
    for call in (node, *node.find_all(nodes.Call)):
        if isinstance(call, nodes.Call) and _got(call) is not None:
            for default in call.args[1:]:
                yield from _key_paths(default)
