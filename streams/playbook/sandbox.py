"""jinja2's immutable sandbox, narrowed: data first, bounded, deterministic.

- `a.items` is the key "items" of a mapping where it has one; its method only where it has not.
- Nothing reads a clock or random numbers, so rendering again gives the same.
- Undefined values stay undefined along a path, and fail where they are used.
- Loops and calls look at a deadline; operations that can blow up are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache, partial
from importlib.metadata import entry_points
from time import monotonic
from typing import Any

import orjson
from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, missing

from streams.errors import Refused
from streams.playbook import sandbox_filters, sandbox_limits
from streams.playbook.plain_values import EmptyValue, part_of

TIME_LIMIT_S = 2.0
"""How long one template may take."""
HELPERS = "streams.expressions"
"""Entry-point group of further helpers: the name in templates -> a pure function."""

_BUILT_IN = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "filesizeformat", "first"),
    *("float", "groupby", "int", "items", "last", "length", "list", "lower", "map", "max"),
    *("min", "reject", "rejectattr", "reverse", "round", "select", "selectattr", "sort"),
    *("string", "title", "trim", "truncate", "unique", "upper", "urlencode", "wordcount"),
)
_KINDS = {str: "text", list: "list", int: "number", float: "number", bool: "truth value"}
_RUNTIME = (LoopContext, Namespace)


class TooSlow(Exception):
    """A template passed its time limit."""


class UndefinedValue(StrictUndefined):
    """A value that is not there: its attributes are not there either, using it fails."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        name, obj = self._undefined_name, self._undefined_obj
        if self._undefined_hint:
            return self._undefined_hint
        if obj is missing:
            return f"{name!r} is not defined"
        if not isinstance(obj, Mapping):
            return f"{name!r} is not defined: a {_KINDS.get(type(obj), 'value')} has no such part"
        near = get_close_matches(str(name), map(str, obj), n=1)
        there = ", ".join(list(map(str, obj))[:10]) or "nothing"
        return f"{name!r} is not defined: there is {there}" + (
            f"; did you mean {near[0]!r}?" if near else ""
        )

    def __getattr__(self, name: str) -> UndefinedValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: object) -> Any:
        return self


class TemplateContext(Context):
    """jinja's context over a scope that is not copied, with a deadline."""

    def __init__(self, environment: Sandbox, scope: Mapping[str, object]) -> None:
        self.environment, self.eval_ctx = environment, environment.eval_ctx
        self.parent = scope  # type: ignore[assignment]
        self.vars, self.exported_vars = {}, set()
        self.name, self.blocks = None, {}
        sandbox_limits.spent.size = 0
        self.deadline = 0.0  # set when something looks at it: most templates never do

    def resolve_or_missing(self, key: str) -> object:
        """Look up a name: what the template set, the scope, the helpers."""
        if key in self.vars:
            return self.vars[key]
        if key in self.parent:
            return self.parent[key]
        return self.environment.globals.get(key, missing)

    def watch(self) -> None:
        """Stop here when time is up."""
        if not self.deadline:
            self.deadline = monotonic() + TIME_LIMIT_S
        elif monotonic() > self.deadline:
            raise TooSlow(f"it took longer than {TIME_LIMIT_S:g} s")

    def derived(self, locals: Mapping[str, object] | None = None) -> TemplateContext:
        """Return a scope with these names over this one, under the same deadline."""
        assert isinstance(self.environment, Sandbox)
        spent = sandbox_limits.spent.size
        made = TemplateContext(self.environment, {**self.parent, **self.vars, **(locals or {})})
        made.deadline, sandbox_limits.spent.size = self.deadline, spent
        return made


@pass_context
def _watched(scope: TemplateContext, items: Iterable[object]) -> Iterator[object]:
    for item in items:
        scope.watch()
        yield item


def tojson(value: object, indent: int | None = None) -> str:
    """Return the value as JSON text."""
    plain = orjson.dumps(value, default=_as_text).decode()
    sandbox_limits.text_of(len(plain))
    return json.dumps(orjson.loads(plain), indent=indent) if indent else plain


def fromjson(text: str) -> object:
    """Return the value of a JSON text."""
    value: object = orjson.loads(text)
    return value


def _as_text(value: object) -> object:
    if isinstance(value, EmptyValue):
        return None
    if isinstance(value, Undefined):
        str(value)  # raises and names what is missing
    if isinstance(value, (tuple, set, frozenset, Mapping)):
        return dict(value) if isinstance(value, Mapping) else list(value)
    return str(value)


class _Values(NativeCodeGenerator):
    """Generates code that yields values as they are, constants too."""

    def _output_child_to_const(self, node: nodes.Expr, frame: object, finalize: object) -> str:
        if isinstance(node, nodes.TemplateData):
            return node.data
        raise nodes.Impossible


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment all templates are compiled in."""

    code_generator_class = _Values
    concat = staticmethod(sandbox_filters.join)
    intercepted_binops = frozenset(sandbox_limits.BINARY)

    def __init__(
        self, helpers: Mapping[str, Callable[..., object]], *, lenient: bool = False
    ) -> None:
        undefined = EmptyValue if lenient else UndefinedValue
        super().__init__(undefined=undefined, keep_trailing_newline=True, optimized=False)
        own = {"tojson": tojson, "fromjson": fromjson, **helpers}
        built_in = {name: self.filters[name] for name in _BUILT_IN}
        known = {**built_in, **sandbox_filters.FILTERS, **own}
        self.filters = {name: sandbox_limits.counting(one) for name, one in known.items()}
        self.filters |= {"_watched": _watched, "_concat": sandbox_filters.concat}
        self.filters["_part"] = part_of
        self.globals = {
            "range": _range,
            "dict": dict,
            "namespace": Namespace,
            **own,
        }
        self.binop_table.update(sandbox_limits.BINARY)
        self.eval_ctx = nodes.EvalContext(self)

    def getattr(self, obj: object, attribute: str) -> object:
        """Return `obj.attribute`: a key of a mapping before any method."""
        if type(obj) is dict or isinstance(obj, Mapping):
            try:
                return obj[attribute]
            except KeyError:
                pass
        return self._attribute(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`: never an attribute of an object."""
        try:
            return obj[argument]
        except (TypeError, LookupError):
            if isinstance(obj, Undefined):
                return obj
            return self.undefined(obj=obj, name=argument)

    def _attribute(self, obj: object, attribute: str) -> object:
        if isinstance(obj, Undefined):
            return obj
        for kind, methods in sandbox_filters.METHODS.items():
            if isinstance(obj, kind) and attribute in methods:
                return partial(methods[attribute], obj)
        for kind, names in sandbox_filters.PLAIN:
            if isinstance(obj, kind):
                return (
                    getattr(obj, attribute)
                    if attribute in names
                    else self.undefined(obj=obj, name=attribute)
                )
        if isinstance(obj, _RUNTIME):
            return super().getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def call(  # type: ignore[override]
        __self,  # noqa: N805
        __context: TemplateContext,
        __obj: Any,
        *args: object,
        **kwargs: object,
    ) -> object:
        """Call a helper or a method, while there is time."""
        __context.watch()
        return sandbox_limits.counted(super().call(__context, __obj, *args, **kwargs))


def _range(*args: int) -> range:
    made = range(*args)
    sandbox_limits.items_of(len(made))
    return made


@lru_cache
def sandbox(*, lenient: bool = False) -> Sandbox:
    """Return this process's environment with the helpers that plug-ins bring.

    In the lenient one an undefined name is empty instead of an error.

    Raises:
        Refused: a plug-in cannot be loaded.
    """
    helpers = {}
    for entry in entry_points(group=HELPERS):
        try:
            helpers[entry.name] = entry.load()
        except Exception as error:
            raise Refused(
                f"expression helper {entry.name!r} ({entry.value}) cannot be loaded: {error!r}; "
                "repair or remove the package that brings it"
            ) from error
    return Sandbox(helpers, lenient=lenient)
