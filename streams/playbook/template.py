"""Compiled values of a playbook: constants, and structures of other templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from streams.events.model import Json
from streams.playbook.template_compiler import KeyPath


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


def fixed_part(template: Template, key: str) -> tuple[bool, Json]:
    """Return whether the rendered mapping has a constant at `key`, and its value."""
    if isinstance(template, Constant):
        value = template.render({})
        return True, value.get(key) if isinstance(value, dict) else None
    if isinstance(template, HasFixedParts):
        return template.fixed(key)
    return False, None


@runtime_checkable
class HasFixedParts(Protocol):
    """A template of a mapping that knows which of its parts are constants."""

    def fixed(self, key: str) -> tuple[bool, Json]:
        """Return whether there is a constant (or nothing) at `key`, and its value."""
        ...


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
        self.names, self.key_paths = read_by(templates.values())

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
        self.names, self.key_paths = read_by(templates)

    def render(self, scope: Mapping[str, object]) -> Json:
        return [render(scope) for render in self._items]


def read_by(templates: Iterable[Template]) -> tuple[frozenset[str], frozenset[KeyPath]]:
    key_paths = frozenset[KeyPath]().union(*(template.key_paths for template in templates))
    return first_names(key_paths), key_paths


def first_names(key_paths: Iterable[KeyPath]) -> frozenset[str]:
    return frozenset(key_path[0] for key_path in key_paths)
