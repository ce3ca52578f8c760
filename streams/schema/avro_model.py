"""Avro schemas as frozen values, with full names.

Avro's JSON has many spellings for one schema (inherited namespaces, names in place of
definitions, logical types as attributes). The compatibility rules are simple only on one
spelling: this one, which `avro_parse` reads from the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without a name; `logical` is the meaning of its number or bytes."""

    type: str
    logical: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A record's field; `default` counts only when `has_default` is true."""

    name: str
    schema: Node
    has_default: bool
    default: object
    aliases: frozenset[str]


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """A record with its full name."""

    name: str
    aliases: frozenset[str]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class AvroEnum:
    """An enumeration; with a `default`, a reader survives symbols it does not know."""

    name: str
    aliases: frozenset[str]
    symbols: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class AvroFixed:
    """Exactly `size` bytes."""

    name: str
    aliases: frozenset[str]
    size: int
    logical: str | None


@dataclass(frozen=True, slots=True)
class Array:
    """A list of `items`."""

    items: Node


@dataclass(frozen=True, slots=True)
class Map:
    """String keys to `values`."""

    values: Node


@dataclass(frozen=True, slots=True)
class Union:
    """One of `branches`."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a named type in the schema, possibly an enclosing one."""

    name: str


Named: TypeAlias = AvroRecord | AvroEnum | AvroFixed
Node: TypeAlias = Primitive | Named | Array | Map | Union | Ref


@dataclass(frozen=True, slots=True)
class Schema:
    """A whole schema: its root, and every named type in it."""

    root: Node
    named: Mapping[str, Named]

    def resolve(self, node: Node) -> Primitive | Named | Array | Map | Union:
        """Return the definition behind `node`."""
        return self.named[node.name] if isinstance(node, Ref) else node


def branch_kind(node: Node) -> str:
    """Return what distinguishes the branches of a union: a full name, or a type's name."""
    if isinstance(node, Primitive):
        return node.type
    if isinstance(node, Array | Map | Union):
        return type(node).__name__.lower()
    return node.name
