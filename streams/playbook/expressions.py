"""Templates: jinja2's immutable sandbox, compiled once, preserving types.

A text that is one `{{ expression }}` (apart from white space) yields the value itself, with its
type. Any other text yields text, which is never parsed again: '12345', '1e5', 'None' and ''
stay text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.runtime import Undefined

from streams.events.model import Json
from streams.playbook.errors import ExpressionFailed
from streams.playbook.sandbox import TemplateContext, TooSlow, sandbox
from streams.playbook.sandbox_limits import MAX_TEXT, LimitExceeded, text_of
from streams.playbook.template import (
    Constant,
    Template,
    first_names,
    mapping,
    read_by,
    sequence,
)
from streams.playbook.template_compiler import (
    STRICT,
    NameRules,
    compile_tree,
    keys_of,
    parse,
)
from streams.playbook.template_values import to_plain


def compile_value(structure: object, rules: NameRules = STRICT) -> Template:
    """Compile any value of a playbook: constants, text, and lists and mappings of them.

    Raises:
        BadTemplate: a text in it is not a valid template.
    """
    if isinstance(structure, str):
        return _text(structure, rules)
    if isinstance(structure, Mapping):
        return mapping({str(key): compile_value(value, rules) for key, value in structure.items()})
    if isinstance(structure, (list, tuple)):
        return sequence([compile_value(value, rules) for value in structure])
    return Constant(cast(Json, structure))


def is_text(template: Template) -> bool:
    """Return whether it renders to text in every scope: it is, or contains, literal text."""
    if isinstance(template, Constant):
        return isinstance(template.render({}), str)
    return isinstance(template, (_Text, _Program))


class _Path:
    """`a.b["c"]`: looked up without jinja while every part is a key of a dict."""

    __slots__ = ("_first", "_rest", "_slow", "key_paths", "names")

    def __init__(self, keys: Sequence[str], slow: _Expression) -> None:
        self._first, self._rest, self._slow = keys[0], tuple(keys[1:]), slow
        self.names, self.key_paths = slow.names, slow.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        try:
            value = scope[self._first]
            for key in self._rest:
                if type(value) is not dict:
                    return self._slow.render(scope)
                value = value[key]
        except KeyError:
            return self._slow.render(scope)
        return cast(Json, value)

    def text(self, scope: Mapping[str, object]) -> str:
        """Return its value as text."""
        value = self.render(scope)
        if type(value) is str:
            return value
        return str(value) if type(value) is int else self._slow.text(scope)


class _Expression:
    """One expression that jinja compiled."""

    __slots__ = ("_run", "_sandbox", "_text", "key_paths", "names")

    def __init__(self, text: str, node: nodes.Expr, rules: NameRules) -> None:
        self._text, self._sandbox = text, sandbox(lenient=rules.lenient)
        tree = nodes.Template([nodes.Output([node])])
        self._run, self.key_paths = compile_tree(text, tree, rules)
        self.names = first_names(self.key_paths)

    def render(self, scope: Mapping[str, object]) -> Json:
        context = TemplateContext(self._sandbox, scope)
        try:
            return cast(Json, to_plain(next(self._run(context)), context.watch))
        except Exception as error:
            raise _failed(self._text, error) from error

    def text(self, scope: Mapping[str, object]) -> str:
        """Return its value as text; an undefined one may be empty."""
        context = TemplateContext(self._sandbox, scope)
        try:
            return _as_text(next(self._run(context)), context)
        except Exception as error:
            raise _failed(self._text, error) from error


class _Text:
    """Text with expressions in it."""

    __slots__ = ("_parts", "_text", "key_paths", "names")

    def __init__(self, text: str, parts: Sequence[str | _Path | _Expression]) -> None:
        self._text = text
        self._parts = [part if isinstance(part, str) else part.text for part in parts]
        self.names, self.key_paths = read_by([part for part in parts if not isinstance(part, str)])

    def render(self, scope: Mapping[str, object]) -> Json:
        made = "".join([part if isinstance(part, str) else part(scope) for part in self._parts])
        if len(made) > MAX_TEXT:
            raise ExpressionFailed(self._text, f"its text has more than {MAX_TEXT} characters")
        return made


class _Program:
    """Text with statements in it, such as `{% for %}`."""

    __slots__ = ("_run", "_sandbox", "_text", "key_paths", "names")

    def __init__(self, text: str, tree: nodes.Template, rules: NameRules) -> None:
        self._text, self._sandbox = text, sandbox(lenient=rules.lenient)
        self._run, self.key_paths = compile_tree(text, tree, rules)
        self.names = first_names(self.key_paths)

    def render(self, scope: Mapping[str, object]) -> Json:
        context, parts, length = TemplateContext(self._sandbox, scope), [], 0
        try:
            for value in self._run(context):
                parts.append(_as_text(value, context))
                length += len(parts[-1])
                text_of(length)
        except Exception as error:
            raise _failed(self._text, error) from error
        return "".join(parts)


def _failed(text: str, error: Exception) -> ExpressionFailed:
    if isinstance(error.__cause__, TemplateError):
        error = error.__cause__
    if isinstance(error, (LimitExceeded, TooSlow, TemplateError)):
        return ExpressionFailed(text, str(error))
    return ExpressionFailed(text, f"{type(error).__name__}: {error}")


def _as_text(value: object, context: TemplateContext) -> str:
    if isinstance(value, Undefined):
        return str(value)  # raises where an undefined name is an error
    return str(to_plain(value, context.watch))


def _text(text: str, rules: NameRules) -> Template:
    if "{" not in text:
        return Constant(text)
    tree = parse(text.strip(), rules)
    match tree.body:
        case [nodes.Output(nodes=[node])]:
            return _one(text.strip(), node, text, rules)
    tree = parse(text, rules)
    if all(isinstance(statement, nodes.Output) for statement in tree.body):
        outputs = [node for output in tree.body for node in cast(nodes.Output, output).nodes]
        if all(isinstance(node, nodes.TemplateData) for node in outputs):
            return Constant("".join(cast(nodes.TemplateData, node).data for node in outputs))
        return _Text(text, [_hole(text, node, rules) for node in outputs])
    return _Program(text, tree, rules)


def _one(text: str, node: nodes.Expr, whole: str, rules: NameRules) -> Template:
    if isinstance(node, nodes.TemplateData):
        return Constant(whole if node.data == text else whole.replace(text, node.data))
    return _expression(text, node, rules)


def _hole(text: str, node: nodes.Expr, rules: NameRules) -> str | _Path | _Expression:
    return node.data if isinstance(node, nodes.TemplateData) else _expression(text, node, rules)


def _expression(text: str, node: nodes.Expr, rules: NameRules) -> _Path | _Expression:
    keys = keys_of(node)
    slow = _Expression(text, node, rules)
    return _Path(keys, slow) if keys else slow
