"""Validation of default values of fields.

Readers notice a wrong default only when it is used, so it is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams.schema.avro_model import (
    Array,
    AvroEnum,
    AvroFixed,
    AvroRecord,
    Map,
    Named,
    Node,
    Primitive,
    Ref,
    Union,
    branch_kind,
)

_INT = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)


def default_problem(value: object, node: Node, named: Mapping[str, Named]) -> str | None:
    """Return why `value` cannot be a default of `node`, or None when it can.

    The default of a union belongs to its first branch: older readers require that.
    """
    if isinstance(node, Ref):
        return default_problem(value, named[node.name], named)
    if isinstance(node, Union):
        problem = default_problem(value, node.branches[0], named)
        return problem and f"{problem}; in a union the default belongs to the first branch"
    if isinstance(node, Array):
        return _each(value, list, "array", node.items, named)
    if isinstance(node, Map):
        return _each(value, dict, "map", node.values, named)
    if isinstance(node, AvroRecord):
        return _record(value, node, named)
    return None if _is_leaf(value, node) else f"{value!r} is not of type {branch_kind(node)}"


def _each(
    value: object, kind: type, name: str, inner: Node, named: Mapping[str, Named]
) -> str | None:
    if not isinstance(value, kind):
        return f"{value!r} is not of type {name}"
    items = value.values() if isinstance(value, dict) else value
    assert not isinstance(items, str)
    found = (default_problem(one, inner, named) for one in items)  # type: ignore[attr-defined]
    return next((problem for problem in found if problem), None)


def _record(value: object, node: AvroRecord, named: Mapping[str, Named]) -> str | None:
    if not isinstance(value, dict):
        return f"{value!r} is not of type {node.name}"
    for field in node.fields:
        if field.name in value:
            problem = default_problem(value[field.name], field.schema, named)
            if problem:
                return problem
        elif not field.has_default:
            return f"{value!r} lacks field {field.name} of {node.name}"
    return None


def _is_leaf(value: object, node: Primitive | AvroEnum | AvroFixed) -> bool:
    if isinstance(node, AvroEnum):
        return value in node.symbols
    if isinstance(node, AvroFixed):
        return isinstance(value, str) and len(value) == node.size and _is_latin(value)
    if isinstance(value, bool) or node.type == "boolean":
        return isinstance(value, bool) and node.type == "boolean"
    match node.type:
        case "null":
            return value is None
        case "int":
            return isinstance(value, int) and value in _INT
        case "long":
            return isinstance(value, int) and value in _LONG
        case "float" | "double":
            return isinstance(value, int | float)
        case "bytes":
            return isinstance(value, str) and _is_latin(value)
        case _:
            return isinstance(value, str)


def _is_latin(text: str) -> bool:
    """Return whether text can be bytes: Avro writes those as code points 0 to 255."""
    return all(ord(char) < 256 for char in text)
