"""The event catalogue, loaded from its data file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

import yaml

from streams.errors import Inconsistent

PAYLOAD_RULES = ("none", "optional", "required")
USER_DATA = ("context", "result", "error", "current_item")
COLUMNS = ("node_name", "node_type", "status", "error")
SCALARS = ("id", "int", "text", "bool", "digest", "time")
DATA_KINDS = ("json", "object", "text", "int", "bool")


class BadCatalogue(Inconsistent):
    """The catalogue's data file contradicts itself."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"event catalogue: {where}: {why}")


@dataclass(frozen=True, slots=True)
class RootType:
    """A unit of order and its entities."""

    name: str
    why: str
    entities: Mapping[str, str | None]
    """Entity name -> field of its id (`node_name` or a meta field); None: the root itself."""

    @property
    def topic(self) -> str:
        return f"noetl.events.{self.name}"


@dataclass(frozen=True, slots=True)
class MetaField:
    """One routing value of an event type."""

    name: str
    kind: str
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataField:
    """One key of an event's `context` or `result`, or of a shape."""

    name: str
    kind: str
    """One of DATA_KINDS, or the name of a shape."""
    required: bool
    is_list: bool = False


DataFields: TypeAlias = tuple[DataField, ...]


@dataclass(frozen=True, slots=True)
class EventType:
    """The catalogue's entry of an event type."""

    name: str
    root: str
    entity: str
    writers: tuple[str, ...]
    why: str
    version: int = 1
    columns: tuple[str, ...] = ()
    meta: Mapping[str, MetaField] = field(default_factory=dict)
    payload: str = "none"
    user_data: tuple[str, ...] = ()
    context: DataFields | DataField | None = None
    """Its keys, each a field of the class; or one field for the whole; None: not declared."""
    result: DataFields | DataField | None = None
    planned: bool = False
    """No code writes it yet."""
    claim: str | None = None
    ends: bool = False
    reopens: bool = False
    after_end: bool = False
    required_meta: frozenset[str] = frozenset()

    @property
    def schema_name(self) -> str:
        return f"noetl.{self.name}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every root and every event type."""

    roots: Mapping[str, RootType]
    types: Mapping[str, EventType]
    shapes: Mapping[str, DataFields] = field(default_factory=dict)
    """Objects shared by several types, by name."""

    @property
    def endings(self) -> tuple[str, ...]:
        """The types that end their root."""
        return tuple(sorted(name for name, kind in self.types.items() if kind.ends))


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """Return the catalogue of this version of the program."""
    text = files("streams.events").joinpath("catalogue.yaml").read_text("utf-8")
    return parse_catalogue(yaml.safe_load(text))


def parse_catalogue(data: Mapping[str, Any]) -> Catalogue:
    """Parse and validate catalogue data.

    Raises:
        BadCatalogue: a type names an unknown root, entity, field kind or rule.
    """
    roots = {
        name: RootType(name, entry["why"], MappingProxyType(dict(entry["entities"])))
        for name, entry in data["roots"].items()
    }
    declared: Mapping[str, Mapping[str, str]] = data.get("shapes", {})
    shapes = {name: _data_fields(name, keys, declared) for name, keys in declared.items()}
    types = {
        name: _event_type(name, entry, roots, declared) for name, entry in data["types"].items()
    }
    return Catalogue(MappingProxyType(roots), MappingProxyType(types), MappingProxyType(shapes))


def _event_type(
    name: str, entry: Mapping[str, Any], roots: Mapping[str, RootType], shapes: Collection[str]
) -> EventType:
    known = set(EventType.__dataclass_fields__) - {"name", "required_meta"}
    if unknown := set(entry) - known:
        raise BadCatalogue(name, f"unknown keys {sorted(unknown)}")
    root = roots.get(entry["root"])
    if root is None:
        raise BadCatalogue(name, f"unknown root {entry['root']!r}")
    meta = {f.name: f for f in (_meta_field(name, k, v) for k, v in entry.get("meta", {}).items())}
    parsed = EventType(
        **{
            **entry,
            "name": name,
            "writers": tuple(entry["writers"]),
            "columns": tuple(entry.get("columns", ())),
            "user_data": tuple(entry.get("user_data", ())),
            "context": _data(name, "context", entry.get("context"), shapes),
            "result": _data(name, "result", entry.get("result"), shapes),
            "meta": MappingProxyType(meta),
            "required_meta": frozenset(f.name for f in meta.values() if f.required),
        }
    )
    _check(parsed, root)
    return parsed


def _meta_field(type_name: str, name: str, kind: str | Sequence[str]) -> MetaField:
    if not isinstance(kind, str):
        return MetaField(name, "choice", required=True, choices=tuple(kind))
    scalar = kind.removeprefix("maybe ")
    if scalar not in SCALARS:
        raise BadCatalogue(f"{type_name}.meta.{name}", f"unknown kind {kind!r}")
    return MetaField(name, scalar, required=scalar == kind)


def _data(
    type_name: str, column: str, declared: str | Mapping[str, str] | None, shapes: Collection[str]
) -> DataFields | DataField | None:
    if declared is None:
        return None
    if isinstance(declared, str):
        return _data_field(type_name, column, f"maybe {declared}", shapes)
    return _data_fields(f"{type_name}.{column}", declared, shapes)


def _data_fields(where: str, keys: Mapping[str, str], shapes: Collection[str]) -> DataFields:
    return tuple(_data_field(where, name, kind, shapes) for name, kind in keys.items())


def _data_field(where: str, name: str, declared: str, shapes: Collection[str]) -> DataField:
    single = declared.removeprefix("maybe ")
    kind = single.removeprefix("list of ")
    if kind not in DATA_KINDS and kind not in shapes:
        raise BadCatalogue(f"{where}.{name}", f"unknown kind {declared!r}")
    return DataField(name, kind, required=single == declared, is_list=kind != single)


def _check(kind: EventType, root: RootType) -> None:
    if kind.entity not in root.entities:
        raise BadCatalogue(kind.name, f"root {root.name} has no entity {kind.entity!r}")
    where = root.entities[kind.entity]
    if where == "node_name" and "node_name" not in kind.columns:
        raise BadCatalogue(kind.name, "its entity is found by node_name, which it does not require")
    if where not in (None, "node_name", *kind.required_meta):
        raise BadCatalogue(kind.name, f"its entity is found by meta.{where}, which is not required")
    if kind.claim is not None and kind.claim not in kind.required_meta:
        raise BadCatalogue(kind.name, f"its claim meta.{kind.claim} is not required")
    if kind.payload not in PAYLOAD_RULES:
        raise BadCatalogue(kind.name, f"payload is {kind.payload!r}, not one of {PAYLOAD_RULES}")
    if wrong := set(kind.user_data) - set(USER_DATA):
        raise BadCatalogue(kind.name, f"user_data names {sorted(wrong)}, not of {USER_DATA}")
    if wrong := set(kind.columns) - set(COLUMNS):
        raise BadCatalogue(kind.name, f"columns names {sorted(wrong)}, not of {COLUMNS}")
    if "error" in kind.columns and "error" not in kind.user_data:
        raise BadCatalogue(kind.name, "it requires error, which is missing from its user_data")
    _check_data(kind)


def _check_data(kind: EventType) -> None:
    """Reject duplicate field names: all are attributes of one class."""
    names = [*kind.columns, *kind.meta, "type", "payload_ref"]
    for column, declared in (("context", kind.context), ("result", kind.result)):
        if declared is not None and column not in kind.user_data:
            raise BadCatalogue(kind.name, f"declares the keys of {column}, which it does not carry")
        names += [one.name for one in declared] if isinstance(declared, tuple) else [column]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadCatalogue(kind.name, f"has two fields named {sorted(twice)}")
