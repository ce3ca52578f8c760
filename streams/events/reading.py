"""Readers of an event's JSON columns, with defaults for missing or mistyped values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Required, TypedDict, TypeVar, cast, overload

from streams.events.model import Json, PayloadRef, Routing

Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=Mapping[str, object])


class EventFields(Protocol):
    """The columns shared by `NewEvent` and `Event`."""

    @property
    def type(self) -> str: ...
    @property
    def node_name(self) -> str | None: ...
    @property
    def node_type(self) -> str | None: ...
    @property
    def status(self) -> str | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def current_item(self) -> Json: ...
    @property
    def meta(self) -> Mapping[str, Routing]: ...
    @property
    def context(self) -> Json: ...
    @property
    def result(self) -> Json: ...
    @property
    def payload_ref(self) -> PayloadRef | None: ...
    @property
    def schema_version(self) -> int | None:
        """None: the newest."""
        ...


@dataclass(frozen=True, slots=True)
class RoutingFields:
    """The routing columns alone, for a reader that does not fetch the others."""

    type: str
    meta: Mapping[str, Routing]
    node_name: str | None = None
    node_type: str | None = None
    status: str | None = None
    error: str | None = None
    current_item: Json = None
    context: Json = None
    result: Json = None
    payload_ref: PayloadRef | None = None
    schema_version: int | None = None


class EventColumns(TypedDict, total=False):
    """The arguments of `NewEvent` that an event class determines."""

    type: Required[str]
    meta: Required[dict[str, Routing]]
    node_name: str
    node_type: str
    status: str
    error: str | None
    current_item: Json
    context: Json
    result: Json
    payload_ref: PayloadRef | None


def unfrozen(kind: type[Value]) -> type[Any]:
    """Return a class of the same layout whose attributes can be assigned.

    The `__init__` of a frozen class takes ten times as long, for every event of a fold.
    """
    return type(f"_{kind.__name__}", (), {"__slots__": vars(kind)["__slots__"]})


def freeze(new: Any, kind: type[Value]) -> Value:
    """Return an instance of `unfrozen(kind)` as one of `kind`."""
    new.__class__ = kind
    value: Value = new
    return value


def payload_of(event: EventFields) -> PayloadRef:
    """Return the reference that an event of its type must have."""
    if event.payload_ref is None:
        raise KeyError("payload_ref")
    return event.payload_ref


def maybe_int(meta: Mapping[str, Routing], name: str) -> int | None:
    """Return an optional routing value as a number; 64-bit ids are text in JSON."""
    value = meta.get(name)
    return None if value is None else int(value)


def maybe_str(meta: Mapping[str, Routing], name: str) -> str | None:
    """Return an optional routing value as text."""
    value = meta.get(name)
    return None if value is None else str(value)


def maybe_bool(meta: Mapping[str, Routing], name: str) -> bool | None:
    """Return an optional routing value as a boolean."""
    value = meta.get(name)
    return None if value is None else bool(value)


def fields_of(value: Json) -> dict[str, Json]:
    """Return the keys of a JSON object; anything else has none."""
    return value if isinstance(value, dict) else {}


def object_of(value: Json) -> dict[str, Json] | None:
    """Return a JSON object, or None."""
    return value if isinstance(value, dict) else None


def text_of(value: Json) -> str | None:
    """Return a JSON text, or None."""
    return value if isinstance(value, str) else None


def int_of(value: Json) -> int | None:
    """Return a JSON integer, or None."""
    return value if type(value) is int else None


def bool_of(value: Json) -> bool | None:
    """Return a JSON boolean, or None."""
    return value if isinstance(value, bool) else None


def list_of(value: Json) -> list[Json] | None:
    """Return a JSON list, or None."""
    return value if isinstance(value, list) else None


def objects_of(value: Json) -> list[dict[str, Json]] | None:
    """Return the objects of a JSON list, or None where there is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else None


@overload
def shape_of(value: dict[str, Json], shape: type[Shape]) -> Shape: ...
@overload
def shape_of(value: Json, shape: type[Shape]) -> Shape | None: ...
def shape_of(value: Json, shape: type[Shape]) -> Shape | None:
    """Return a JSON object typed as a declared shape, or None."""
    return cast(Shape, value) if isinstance(value, dict) else None


def json_of(value: Mapping[str, object] | None) -> Json:
    """Return an object of a declared shape as plain JSON."""
    return cast(Json, value)
