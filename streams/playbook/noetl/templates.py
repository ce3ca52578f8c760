"""Templates with the meanings of NoETL's spelling: conditions, changes, tool configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streams.errors import Refused
from streams.events.model import Json
from streams.playbook.template import Constant, Template
from streams.playbook.template_compiler import KeyPath

_FALSE = frozenset({"", "false", "0", "no", "none", "null", "off", "{}", "[]"})


def is_true(value: Json) -> bool:
    """Return the truth of a rendered condition: words such as `no` and `none` are false."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE
    return bool(value)


class Condition:
    """A condition; one that cannot be evaluated does not hold."""

    __slots__ = ("_inner", "key_paths", "names")

    def __init__(self, inner: Template) -> None:
        self._inner, self.names, self.key_paths = inner, inner.names, inner.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return whether it holds."""
        try:
            return is_true(self._inner.render(scope))
        except Refused:
            return False


class NewValues:
    """Names and their new values; all are computed before any is set, one that fails is skipped."""

    __slots__ = ("_parts", "key_paths", "names")

    def __init__(self, parts: Mapping[str, Template]) -> None:
        self._parts = dict(parts)
        self.names, self.key_paths = _read(parts)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the changes."""
        made: dict[str, Json] = {}
        for name, template in self._parts.items():
            try:
                made[name] = template.render(scope)
            except Refused:
                continue
        return made


class Configuration:
    """A tool's keys; those of `input` are names for the others."""

    __slots__ = ("_given", "_parts", "key_paths", "names")

    def __init__(self, parts: Mapping[str, Template], given: Mapping[str, Template]) -> None:
        """Compile the tool's keys `parts`, and `given`, the keys of its `input`."""
        self._parts, self._given = dict(parts), dict(given)
        names, key_paths = _read(parts)
        own_names, own_paths = _read(given)
        self.names = (names - given.keys()) | own_names
        self.key_paths = frozenset(one for one in key_paths if one[0] not in given) | own_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the configuration, `input` first."""
        values = {name: template.render(scope) for name, template in self._given.items()}
        inner = {**scope, **values} if values else scope
        made: dict[str, Json] = {key: part.render(inner) for key, part in self._parts.items()}
        if self._given:
            made["input"] = values
        return made

    def fixed(self, key: str) -> tuple[bool, Json]:
        """Return whether there is a constant (or nothing) at `key`, and its value."""
        part = self._parts.get(key)
        if part is None or isinstance(part, Constant):
            return True, None if part is None else part.render({})
        return False, None


class Code:
    """Code that may contain templates; where one cannot be rendered, the text stays."""

    __slots__ = ("_inner", "_text", "key_paths", "names")

    def __init__(self, text: str, inner: Template) -> None:
        self._text, self._inner = text, inner
        self.names, self.key_paths = inner.names, inner.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the code."""
        try:
            return self._inner.render(scope)
        except Refused:
            return self._text


class WholeScope:
    """All values of the execution, for code that reads `context`."""

    __slots__ = ("key_paths", "names")

    def __init__(self, steps: frozenset[str]) -> None:
        self.names = steps
        self.key_paths: frozenset[KeyPath] = frozenset((name,) for name in steps)

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the scope's values."""
        return {name: value for name, value in scope.items() if not isinstance(value, Callable)}  # type: ignore[arg-type,misc]


def _read(parts: Mapping[str, Template]) -> tuple[frozenset[str], frozenset[KeyPath]]:
    names = frozenset[str]().union(*(part.names for part in parts.values()))
    return names, frozenset[KeyPath]().union(*(part.key_paths for part in parts.values()))
