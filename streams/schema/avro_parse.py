"""Parser of Avro JSON into the values of `avro_model`; errors name the path."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TypeVar

from fastavro import parse_schema
from fastavro.schema import SchemaParseException

from streams.errors import Refused
from streams.schema.avro_default import default_problem
from streams.schema.avro_model import (
    PRIMITIVES,
    Array,
    AvroEnum,
    AvroFixed,
    AvroRecord,
    Field,
    Map,
    Named,
    Node,
    Primitive,
    Ref,
    Schema,
    Union,
    branch_kind,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_N = TypeVar("_N", AvroRecord, AvroEnum, AvroFixed)


class BadSchema(Refused):
    """The text is not a valid Avro schema."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


def parse(text: str) -> Schema:
    """Parse Avro JSON.

    Raises:
        BadSchema: the text is not JSON, or not valid Avro; the path names the place.
    """
    try:
        source = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadSchema("schema", f"is not JSON ({error})") from error
    reader = _Reader()
    root = reader.read(source, namespace="", path="schema")
    for path, owner in reader.defaults:
        problem = default_problem(owner.default, owner.schema, reader.named)
        if problem:
            raise BadSchema(path, f"its default {problem}")
    try:
        # Writers use fastavro: it must accept the schema, too (decimals, symbols, aliases).
        parse_schema(source)
    except SchemaParseException as error:
        raise BadSchema("schema", str(error)) from error
    return Schema(root, reader.named)


@dataclass(slots=True)
class _Reader:
    """One pass over the JSON; names become known in the order Avro requires."""

    named: dict[str, Named] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    defaults: list[tuple[str, Field]] = field(default_factory=list)

    def read(self, source: object, *, namespace: str, path: str) -> Node:
        if isinstance(source, str):
            return self._by_name(source, namespace, path)
        if isinstance(source, list):
            return self._union(source, namespace, path)
        if not isinstance(source, dict) or "type" not in source:
            raise BadSchema(path, f"{source!r} is not a type")
        kind = source["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, namespace=namespace, path=path)
        if kind in ("record", "error"):
            return self._record(source, namespace, path)
        if kind == "enum":
            return self._enum(source, namespace, path)
        if kind == "fixed":
            return self._fixed(source, namespace, path)
        if kind == "array":
            items = self.read(source.get("items"), namespace=namespace, path=f"{path}[]")
            return Array(items)
        if kind == "map":
            return Map(self.read(source.get("values"), namespace=namespace, path=f"{path}{{}}"))
        if kind in PRIMITIVES:
            return Primitive(kind, _logical(source))
        return self._by_name(kind, namespace, path)

    def _by_name(self, name: object, namespace: str, path: str) -> Node:
        if not isinstance(name, str):
            raise BadSchema(path, f"{name!r} is not a type")
        if name in PRIMITIVES:
            return Primitive(name)
        for full in (_full_name(name, namespace), name):
            if full in self.named or full in self.open:
                return Ref(full)
        raise BadSchema(path, f"type {name!r} is not defined before this place")

    def _union(self, source: list[object], namespace: str, path: str) -> Union:
        branches = tuple(self.read(one, namespace=namespace, path=path) for one in source)
        kinds = [branch_kind(branch) for branch in branches]
        for kind in kinds:
            if kind == "union":
                raise BadSchema(path, "a union directly inside a union is not Avro")
            if kinds.count(kind) > 1:
                raise BadSchema(path, f"the union has two branches of type {kind}")
        if not branches:
            raise BadSchema(path, "the union has no branches")
        return Union(branches)

    def _record(self, source: dict[str, object], namespace: str, path: str) -> AvroRecord:
        name, space = self._declare(source, namespace, path)
        here = name.rpartition(".")[2] if path == "schema" else path
        fields = source.get("fields")
        if not isinstance(fields, list):
            raise BadSchema(path, f"record {name} has no list of fields")
        read = tuple(self._field(one, space, here) for one in fields)
        names = [one.name for one in read]
        for one in names:
            if names.count(one) > 1:
                raise BadSchema(f"{here}.{one}", "two fields have this name")
        return self._define(AvroRecord(name, _aliases(source, space), read))

    def _field(self, source: object, namespace: str, path: str) -> Field:
        if not isinstance(source, dict) or not isinstance(source.get("name"), str):
            raise BadSchema(path, f"{source!r} is not a field with a name")
        name = source["name"]
        here = f"{path}.{name}"
        if not _NAME.match(name) or "." in name:
            raise BadSchema(here, f"{name!r} is not a field name")
        if "type" not in source:
            raise BadSchema(here, "has no type")
        made = Field(
            name=name,
            schema=self.read(source["type"], namespace=namespace, path=here),
            has_default="default" in source,
            default=source.get("default"),
            aliases=frozenset(_strings(source.get("aliases"))),
        )
        if made.has_default:
            self.defaults.append((here, made))
        return made

    def _enum(self, source: dict[str, object], namespace: str, path: str) -> AvroEnum:
        name, space = self._declare(source, namespace, path)
        symbols = _strings(source.get("symbols"))
        if not symbols or len(set(symbols)) != len(symbols):
            raise BadSchema(path, f"enum {name} needs symbols, each once")
        default = source.get("default")
        if default is not None and default not in symbols:
            raise BadSchema(path, f"default {default!r} is not a symbol of enum {name}")
        chosen = default if isinstance(default, str) else None
        return self._define(AvroEnum(name, _aliases(source, space), symbols, chosen))

    def _fixed(self, source: dict[str, object], namespace: str, path: str) -> AvroFixed:
        name, space = self._declare(source, namespace, path)
        size = source.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BadSchema(path, f"fixed {name} needs a size in bytes")
        return self._define(AvroFixed(name, _aliases(source, space), size, _logical(source)))

    def _declare(self, source: dict[str, object], namespace: str, path: str) -> tuple[str, str]:
        name, space = source.get("name"), source.get("namespace", namespace)
        if not isinstance(name, str) or not _NAME.match(name) or name in PRIMITIVES:
            raise BadSchema(path, f"{name!r} is not a type name")
        if not isinstance(space, str):
            raise BadSchema(path, f"{space!r} is not a namespace")
        full = _full_name(name, space)
        if full in self.named or full in self.open:
            raise BadSchema(path, f"type {full} is defined twice")
        self.open.add(full)
        return full, full.rpartition(".")[0]

    def _define(self, made: _N) -> _N:
        self.open.discard(made.name)
        self.named[made.name] = made
        return made


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _aliases(source: dict[str, object], namespace: str) -> frozenset[str]:
    return frozenset(_full_name(one, namespace) for one in _strings(source.get("aliases")))


def _strings(source: object) -> tuple[str, ...]:
    if not isinstance(source, list):
        return ()
    return tuple(one for one in source if isinstance(one, str))


def _logical(source: dict[str, object]) -> str | None:
    name = source.get("logicalType")
    if not isinstance(name, str):
        return None
    if name == "decimal":
        return f"decimal({source.get('precision')},{source.get('scale', 0)})"
    return name
