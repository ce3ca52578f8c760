"""Shapes: descriptions of documents, for both validation and JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

from streams.events.model import Json
from streams.playbook.problem import Severity
from streams.playbook.yaml_document import Authored, Document, Path


@dataclass(frozen=True, slots=True)
class Anything:
    """Json value; texts in it may be templates."""

    about: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text."""

    about: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is not below `least`."""

    about: str = ""
    least: float = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false."""

    about: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """null."""

    about: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    of: Shape
    about: str = ""


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with known keys. Other keys have the shape `rest`; None: not allowed."""

    name: str
    fields: Mapping[str, Shape]
    about: str = ""
    required: tuple[str, ...] = ()
    rest: Shape | None = None
    is_open: Callable[[Authored], bool] = field(default=lambda value: True)
    """Predicate on the mapping: whether `rest` applies to it."""
    unknown: Severity = Severity.ERROR
    """Severity of an unknown key: it has no effect."""


@dataclass(frozen=True, slots=True)
class Either:
    """One of several shapes, distinguished by their kind of YAML value."""

    shapes: tuple[Shape, ...]
    about: str = ""


Shape: TypeAlias = Anything | Text | Choice | Number | Flag | Nothing | Items | Fields | Either

_NOUNS: Mapping[type, str] = {
    Text: "a text",
    Flag: "true or false",
    Nothing: "nothing",
    Items: "a list",
    Fields: "a mapping",
}


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return a hint with the closest word."""
    found = closest(word, words)
    return f"did you mean {found!r}?" if found else None


def closest(word: str, words: Iterable[str]) -> str | None:
    """Return the word closest to `word`, if any is similar."""
    found = get_close_matches(word, [str(one) for one in words], n=1, cutoff=0.6)
    return found[0] if found else None


def check_shape(document: Document, shape: Shape, value: Json, path: Path) -> bool:
    """Report everything in `value` that is not of `shape`; return whether its kind is right."""
    if isinstance(shape, Either):
        for option in shape.shapes:
            if _matches(option, value):
                return check_shape(document, option, value, path)
    if not _matches(shape, value):
        if value is None:
            document.report(path, f"is empty; it should be {describe(shape)}", at_key=True)
        else:
            document.report(path, f"should be {describe(shape)}, not {_shown(value)}")
        return False
    if isinstance(shape, Choice) and value not in shape.words:
        hint = nearest(str(value), shape.words) or f"there are {', '.join(shape.words)}"
        document.report(path, f"there is no {value!r}", hint)
        return False
    if isinstance(shape, Items) and isinstance(value, list):
        for place, item in enumerate(value):
            check_shape(document, shape.of, item, (*path, place))
    elif isinstance(shape, Fields) and isinstance(value, dict):
        _check_fields(document, shape, value, path)
    return True


def _check_fields(document: Document, shape: Fields, value: Authored, path: Path) -> None:
    rest = shape.rest if shape.rest is not None and shape.is_open(value) else None
    for key, item in value.items():
        known = shape.fields.get(key, rest)
        if known is None:
            hint = nearest(key, tuple(shape.fields)) or f"there are {', '.join(shape.fields)}"
            what = f"unknown key {key!r}"
            if shape.unknown is not Severity.ERROR:
                what += ", which has no effect"
            document.report((*path, key), what, hint, shape.unknown, at_key=True)
        else:
            check_shape(document, known, item, (*path, key))
    for key in shape.required:
        if key not in value:
            document.report(path, f"{key!r} is missing in this {shape.name}")


def _matches(shape: Shape, value: Json) -> bool:
    match shape:
        case Anything():
            return True
        case Text() | Choice():
            return isinstance(value, str)
        case Flag():
            return isinstance(value, bool)
        case Number(_, least, whole):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return False
            return (isinstance(value, int) or not whole) and value >= least
        case Nothing():
            return value is None
        case Items():
            return isinstance(value, list)
        case Fields():
            return isinstance(value, dict)
        case Either(shapes):
            return any(_matches(option, value) for option in shapes)


def describe(shape: Shape) -> str:
    """Return a noun for the values of a shape."""
    match shape:
        case Choice(words):
            return " or ".join(words)
        case Number(_, least, whole):
            return f"a {'whole ' if whole else ''}number from {least:g}"
        case Either(shapes):
            return " or ".join(describe(option) for option in shapes)
        case _:
            return _NOUNS.get(type(shape), "a value")


def _shown(value: Json) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:39]}…"


def schema(shape: Shape, definitions: dict[str, Json]) -> dict[str, Json]:
    """Return the shape as JSON Schema; named mappings go to `definitions`."""
    made = _schema(shape, definitions)
    return {**made, "description": shape.about} if shape.about and "$ref" not in made else made


def _schema(shape: Shape, definitions: dict[str, Json]) -> dict[str, Json]:
    match shape:
        case Anything():
            return {}
        case Text():
            return {"type": "string"}
        case Flag():
            return {"type": "boolean"}
        case Nothing():
            return {"type": "null"}
        case Choice(words):
            return {"enum": list(words)}
        case Number(_, least, whole):
            return {"type": "integer" if whole else "number", "minimum": least}
        case Items(of):
            return {"type": "array", "items": schema(of, definitions)}
        case Either(shapes):
            return {"anyOf": [schema(option, definitions) for option in shapes]}
        case Fields():
            name = shape.name.replace(" ", "_")
            if name not in definitions:
                definitions[name] = {}  # a shape may contain itself
                definitions[name] = _object(shape, definitions)
            return {"$ref": f"#/$defs/{name}"}


def _object(shape: Fields, definitions: dict[str, Json]) -> dict[str, Json]:
    made: dict[str, Json] = {"type": "object"}
    if shape.about:
        made["description"] = shape.about
    made["properties"] = {key: schema(inner, definitions) for key, inner in shape.fields.items()}
    if shape.required:
        made["required"] = list(shape.required)
    made["additionalProperties"] = (
        False if shape.rest is None else schema(shape.rest, definitions) or True
    )
    return made
