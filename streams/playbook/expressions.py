"""Templates: jinja2's immutable sandbox, compiled once, preserving types.

A text that is one `{{ expression }}` (apart from white space) yields the value itself, with its
type. Any other text yields text, which is never parsed again: '12345', '1e5', 'None' and ''
stay text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast

from jinja2 import nodes
from jinja2.exceptions import TemplateError

from streams.events.model import Json
from streams.playbook.errors import ExpressionFailed
from streams.playbook.sandbox import TemplateContext, TooSlow, sandbox
from streams.playbook.sandbox_limits import MAX_TEXT, LimitExceeded, text_of
from streams.playbook.template_compiler import KeyPath, compile_tree, keys_of, parse
from streams.playbook.template_values import to_plain


class Template(Protocol):
    """A compiled value: a constant, an expression, text with expressions in it, or a structure.

    The result of `render` may be shared with the scope and other renders: do not modify it.
    """

    @property
    def names(self) -> frozenset[str]:
        """The top-level names it reads."""
        ...

    @property
    def key_paths(self) -> frozenset[KeyPath]:
        """The names it reads, each with the keys below it."""
        ...

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return its value in `scope`.

        Raises:
            ExpressionFailed: it cannot be rendered, took too long or grew too large.
        """
        ...


def compile_value(structure: object) -> Template:
    """Compile any value of a playbook: constants, text, and lists and mappings of them.

    Raises:
        BadTemplate: a text in it is not a valid template.
    """
    if isinstance(structure, str):
        return _text(structure)
    if isinstance(structure, Mapping):
        return mapping({str(key): compile_value(value) for key, value in structure.items()})
    if isinstance(structure, (list, tuple)):
        return sequence([compile_value(value) for value in structure])
    return Constant(cast(Json, structure))


def mapping(templates: Mapping[str, Template]) -> Template:
    """Return a template that renders to a mapping of these."""
    if all(isinstance(template, Constant) for template in templates.values()):
        return Constant({key: template.render({}) for key, template in templates.items()})
    return _Mapping(templates)


def sequence(templates: Sequence[Template]) -> Template:
    """Return a template that renders to a list of these."""
    if all(isinstance(template, Constant) for template in templates):
        return Constant([template.render({}) for template in templates])
    return _List(templates)


def is_text(template: Template) -> bool:
    """Return whether it renders to text in every scope: it is, or contains, literal text."""
    if isinstance(template, Constant):
        return isinstance(template.render({}), str)
    return isinstance(template, (_Text, _Program))


def fixed_part(template: Template, key: str) -> tuple[bool, Json]:
    """Return whether the rendered mapping has a constant at `key`, and its value."""
    if isinstance(template, Constant):
        value = template.render({})
        return True, value.get(key) if isinstance(value, dict) else None
    if isinstance(template, _Mapping):
        return template.fixed(key)
    return False, None


class Constant:
    """A value without expressions."""

    __slots__ = ("_value",)
    names: frozenset[str] = frozenset()
    key_paths: frozenset[KeyPath] = frozenset()

    def __init__(self, value: Json) -> None:
        self._value = value

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the value."""
        return self._value


class _Mapping:
    __slots__ = ("_fixed", "_parts", "key_paths", "names")

    def __init__(self, templates: Mapping[str, Template]) -> None:
        # Constants are inserted once, which preserves the order of keys.
        self._fixed = {
            key: template.render({}) if isinstance(template, Constant) else None
            for key, template in templates.items()
        }
        self._parts = [
            (key, template.render)
            for key, template in templates.items()
            if not isinstance(template, Constant)
        ]
        self.names, self.key_paths = _read(templates.values())

    def fixed(self, key: str) -> tuple[bool, Json]:
        """Return whether there is a constant (or nothing) at `key`, and its value."""
        return all(key != part for part, _ in self._parts), self._fixed.get(key)

    def render(self, scope: Mapping[str, object]) -> Json:
        made = self._fixed.copy()
        for key, render in self._parts:
            made[key] = render(scope)
        return made


class _List:
    __slots__ = ("_items", "key_paths", "names")

    def __init__(self, templates: Sequence[Template]) -> None:
        self._items = [template.render for template in templates]
        self.names, self.key_paths = _read(templates)

    def render(self, scope: Mapping[str, object]) -> Json:
        return [render(scope) for render in self._items]


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


class _Expression:
    """One expression that jinja compiled."""

    __slots__ = ("_run", "_text", "key_paths", "names")

    def __init__(self, text: str, node: nodes.Expr) -> None:
        self._text = text
        self._run, self.key_paths = compile_tree(text, nodes.Template([nodes.Output([node])]))
        self.names = _first(self.key_paths)

    def render(self, scope: Mapping[str, object]) -> Json:
        context = TemplateContext(sandbox(), scope)
        try:
            return cast(Json, to_plain(next(self._run(context)), context.watch))
        except Exception as error:
            raise _failed(self._text, error) from error


class _Text:
    """Text with expressions in it."""

    __slots__ = ("_parts", "_text", "key_paths", "names")

    def __init__(self, text: str, parts: Sequence[str | Template]) -> None:
        self._text = text
        self._parts = [part if isinstance(part, str) else part.render for part in parts]
        self.names, self.key_paths = _read([part for part in parts if not isinstance(part, str)])

    def render(self, scope: Mapping[str, object]) -> Json:
        made = "".join(
            [part if isinstance(part, str) else str(part(scope)) for part in self._parts]
        )
        if len(made) > MAX_TEXT:
            raise ExpressionFailed(self._text, f"its text has more than {MAX_TEXT} characters")
        return made


class _Program:
    """Text with statements in it, such as `{% for %}`."""

    __slots__ = ("_run", "_text", "key_paths", "names")

    def __init__(self, text: str, tree: nodes.Template) -> None:
        self._text = text
        self._run, self.key_paths = compile_tree(text, tree)
        self.names = _first(self.key_paths)

    def render(self, scope: Mapping[str, object]) -> Json:
        context, parts, length = TemplateContext(sandbox(), scope), [], 0
        try:
            for value in self._run(context):
                parts.append(str(to_plain(value, context.watch)))
                length += len(parts[-1])
                text_of(length)
        except Exception as error:
            raise _failed(self._text, error) from error
        return "".join(parts)


def _read(templates: Iterable[Template]) -> tuple[frozenset[str], frozenset[KeyPath]]:
    key_paths = frozenset[KeyPath]().union(*(template.key_paths for template in templates))
    return _first(key_paths), key_paths


def _first(key_paths: Iterable[KeyPath]) -> frozenset[str]:
    return frozenset(key_path[0] for key_path in key_paths)


def _failed(text: str, error: Exception) -> ExpressionFailed:
    if isinstance(error.__cause__, TemplateError):
        error = error.__cause__
    if isinstance(error, (LimitExceeded, TooSlow, TemplateError)):
        return ExpressionFailed(text, str(error))
    return ExpressionFailed(text, f"{type(error).__name__}: {error}")


def _text(text: str) -> Template:
    if "{" not in text:
        return Constant(text)
    tree = parse(text.strip())
    match tree.body:
        case [nodes.Output(nodes=[node])]:
            return _one(text.strip(), node, text)
    tree = parse(text)
    if all(isinstance(statement, nodes.Output) for statement in tree.body):
        outputs = [node for output in tree.body for node in cast(nodes.Output, output).nodes]
        if all(isinstance(node, nodes.TemplateData) for node in outputs):
            return Constant("".join(cast(nodes.TemplateData, node).data for node in outputs))
        return _Text(text, [_hole(text, node) for node in outputs])
    return _Program(text, tree)


def _one(text: str, node: nodes.Expr, whole: str) -> Template:
    if isinstance(node, nodes.TemplateData):
        return Constant(whole if node.data == text else whole.replace(text, node.data))
    return _expression(text, node)


def _hole(text: str, node: nodes.Expr) -> str | Template:
    return node.data if isinstance(node, nodes.TemplateData) else _expression(text, node)


def _expression(text: str, node: nodes.Expr) -> Template:
    keys = keys_of(node)
    slow = _Expression(text, node)
    return _Path(keys, slow) if keys else slow
