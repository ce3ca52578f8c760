"""Writes streams/events/types.py: one class for each event type of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from textwrap import wrap

from streams.events.catalogue import Catalogue, DataField, DataFields, EventType, MetaField

TYPES_FILE = Path(__file__).with_name("types.py")
_HEADER = '''"""One class for each event type: written by `streams events generate`, not by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NotRequired, Required, TypeAlias, TypedDict

from streams.events.errors import UnreadableEvent
from streams.events.model import Json, PayloadRef, Routing
from streams.events.reading import (
{imports}
)
from streams.events.upcast import at_version
'''
_FOOTER = '''
READERS: dict[str, Callable[[EventFields], AnyEvent]] = {one.TYPE: one.read for one in ALL}
VERSIONS: dict[str, int] = {versions}
"""The newest versions of types; others are at version 1."""


def typed(event: EventFields) -> AnyEvent | None:
    """Return an event as the class of its type; None: the catalogue has no such type.

    An event of an older version is upcasted first.

    Raises:
        UnreadableEvent: a required routing value is missing.
        NewerEvent: the event has a later version than this program reads.
        MissingUpcaster: no upcaster reads its version.
    """
    read = READERS.get(event.type)
    if read is None:
        return None
    version = VERSIONS.get(event.type, 1)
    if event.schema_version not in (version, None):
        event = at_version(event, version)
    try:
        return read(event)
    except KeyError as missing:
        raise UnreadableEvent(event.type, str(missing)) from missing
'''
_META_TYPES = {"id": "int", "int": "int", "text": "str", "bool": "bool"}
_DATA_TYPES = {
    "json": "Json",
    "object": "dict[str, Json]",
    "text": "str",
    "int": "int",
    "bool": "bool",
}
_DEFAULTS = {"object": "{}", "text": '""', "int": "0", "bool": "False"}
_READING = (
    "bool_of",
    "fields_of",
    "freeze",
    "int_of",
    "json_of",
    "list_of",
    "maybe_bool",
    "maybe_int",
    "maybe_str",
    "object_of",
    "objects_of",
    "payload_of",
    "shape_of",
    "text_of",
    "unfrozen",
)
_WIDTH = 92
_LINE = 100


def class_name(event_type: str) -> str:
    """Return the class of an event type: FrameCommitted for frame.committed."""
    return "".join(part.capitalize() for part in event_type.replace(".", "_").split("_"))


def generate(catalogue: Catalogue) -> str:
    """Return the text of types.py."""
    shapes = [_shape(name, fields) for name, fields in catalogue.shapes.items()]
    classes = [_event_class(kind) for kind in catalogue.types.values()]
    body = "\n\n\n".join("\n".join(lines) for lines in chain(shapes, classes))
    names = [class_name(name) for name in catalogue.types]
    unions = "\n".join([_union("AnyEvent", names), *_entity_unions(catalogue)])
    listed = "\n".join(["ALL: tuple[type[AnyEvent], ...] = (", *_indented(names), ")"])
    imports = "\n".join(_indented(_imports(body)))
    header = _HEADER.replace("{imports}", imports)
    footer = _FOOTER.replace("{versions}", _versions(catalogue))
    return "\n".join([header, "", body, "\n", unions, listed, footer])


def _versions(catalogue: Catalogue) -> str:
    later = {one.name: one.version for one in catalogue.types.values() if one.version > 1}
    lines = (f'    "{name}": {version},' for name, version in later.items())
    return "\n".join(["{", *lines, "}"]) if later else "{}"


def _union(alias: str, names: Sequence[str]) -> str:
    if len(line := f"{alias}: TypeAlias = " + " | ".join(names)) <= _LINE:
        return line
    first, *more = names
    return "\n".join(
        [f"{alias}: TypeAlias = (\n    {first}", *(f"    | {one}" for one in more), ")"]
    )


def _entity_unions(catalogue: Catalogue) -> Iterator[str]:
    """Yield a union of the events of each entity that is a part of a root."""
    for root in catalogue.roots.values():
        for entity, where in root.entities.items():
            kinds = [one.name for one in catalogue.types.values() if one.entity == entity]
            if where is not None and kinds:
                yield _union(class_name(f"{entity}.event"), [class_name(one) for one in kinds])


def _indented(names: Sequence[str]) -> Iterator[str]:
    return (f"    {name}," for name in names)


def _imports(body: str) -> list[str]:
    return ["EventColumns", "EventFields", *(one for one in _READING if f"{one}(" in body)]


def _shape(name: str, fields: DataFields) -> Iterator[str]:
    yield f"class {class_name(name)}(TypedDict):"
    for one in fields:
        wrapper = "Required" if one.required else "NotRequired"
        yield f"    {one.name}: {wrapper}[{_data_type(one)}]"


def _event_class(kind: EventType) -> Iterator[str]:
    yield from _choices(kind)
    yield "@dataclass(frozen=True, slots=True, kw_only=True)"
    yield f"class {class_name(kind.name)}:"
    yield from _docstring(kind)
    yield ""
    yield f'    TYPE: ClassVar[Literal["{kind.name}"]] = "{kind.name}"'
    if "node_name" not in kind.columns:
        yield "    node_name: ClassVar[None] = None"
    yield from _declarations(kind)
    yield ""
    yield from _reader(kind)
    yield ""
    yield from _writer(kind)
    yield ""
    yield ""
    yield f"_{class_name(kind.name)} = unfrozen({class_name(kind.name)})"


def _docstring(kind: EventType) -> Iterator[str]:
    why = kind.why[0].upper() + kind.why[1:] + "."
    first, *more = wrap(why, _WIDTH - 8)
    if not more:
        yield f'    """{first}"""'
        return
    yield f'    """{first}'
    yield from (f"    {line}" for line in more)
    yield '    """'


def _declarations(kind: EventType) -> Iterator[str]:
    for column in kind.columns:
        yield f"    {column}: str"
    for field in kind.meta.values():
        optional = "" if field.required else " | None = None"
        yield f"    {field.name}: {_meta_type(kind, field)}{optional}"
    for one in _data_fields(kind):
        yield f"    {one.name}: {_data_type(one)}" + _optional(one)
    if "error" in kind.user_data and "error" not in kind.columns:
        yield "    error: str | None = None"
    if "current_item" in kind.user_data:
        yield "    current_item: Json = None"
    if kind.payload == "required":
        yield "    payload_ref: PayloadRef"
    elif kind.payload == "optional":
        yield "    payload_ref: PayloadRef | None = None"


def _optional(one: DataField) -> str:
    if one.required:
        return ""
    return " = None" if one.kind == "json" and not one.is_list else " | None = None"


def _data_fields(kind: EventType) -> Iterator[DataField]:
    """Yield the fields of a class that come from `context` and `result`."""
    for column in ("context", "result"):
        declared = getattr(kind, column)
        if isinstance(declared, tuple):
            yield from declared
        elif column in kind.user_data:
            yield declared or DataField(column, "json", required=False)


def _meta_type(kind: EventType, field: MetaField) -> str:
    if field.choices:
        return class_name(f"{kind.name}.{field.name}")
    return _META_TYPES.get(field.kind, "str")


def _choices_name(kind: EventType, field: MetaField) -> str:
    return f"_{kind.name}_{field.name}".replace(".", "_").upper()


def _choices(kind: EventType) -> Iterator[str]:
    """Yield the type of each routing value with choices, and what each text in the log means."""
    for field in kind.meta.values():
        if field.choices:
            alias = _meta_type(kind, field)
            listed = ", ".join(f'"{one}"' for one in field.choices)
            yield f"{alias}: TypeAlias = Literal[{listed}]"
            yield f"{_choices_name(kind, field)}: dict[Routing, {alias}] = {{"
            yield from (f'    "{one}": "{one}",' for one in field.choices)
            yield "}"
            yield ""
            yield ""


def _data_type(one: DataField) -> str:
    single = _DATA_TYPES.get(one.kind) or class_name(one.kind)
    return f"list[{single}]" if one.is_list else single


def _reader(kind: EventType) -> Iterator[str]:
    yield "    @classmethod"
    yield f"    def read(cls, event: EventFields) -> {class_name(kind.name)}:"
    yield f'        """Return the fields of a {kind.name}."""'
    if kind.meta:
        yield "        meta = event.meta"
    for column in ("context", "result"):
        if getattr(kind, column) and isinstance(getattr(kind, column), tuple):
            yield f"        {column} = fields_of(event.{column})"
    yield f"        new = object.__new__(_{class_name(kind.name)})"
    yield from (f"        new.{one}" for one in _assignments(kind))
    yield "        return freeze(new, cls)"


def _assignments(kind: EventType) -> Iterator[str]:
    for column in kind.columns:
        yield f'{column} = event.{column} or ""'
    for field in kind.meta.values():
        yield f"{field.name} = {_read_meta(kind, field)}"
    for column in ("context", "result"):
        declared = getattr(kind, column)
        if isinstance(declared, tuple):
            yield from (_read_key(column, one) for one in declared)
        elif column in kind.user_data:
            whole = declared or DataField(column, "json", required=False)
            yield f"{column} = {_read_data(whole, f'event.{column}')}"
    if "error" in kind.user_data and "error" not in kind.columns:
        yield "error = event.error"
    if "current_item" in kind.user_data:
        yield "current_item = event.current_item"
    if kind.payload == "required":
        yield "payload_ref = payload_of(event)"
    elif kind.payload == "optional":
        yield "payload_ref = event.payload_ref"


def _read_meta(kind: EventType, field: MetaField) -> str:
    if field.choices:
        return f'{_choices_name(kind, field)}[meta["{field.name}"]]'
    python = _meta_type(kind, field)
    if field.required:
        return f'{python}(meta["{field.name}"])'
    return f'maybe_{python}(meta, "{field.name}")'


def _read_key(column: str, one: DataField) -> str:
    value = f'{column}.get("{one.name}")'
    return f"{one.name} = {_read_data(one, value)}"


def _read_data(one: DataField, value: str) -> str:
    if one.is_list:
        read = f"objects_of({value})" if one.kind == "object" else f"list_of({value})"
        return f"{read} or []" if one.required else read
    if one.kind == "json":
        return value
    if one.kind not in _DATA_TYPES:
        return f"shape_of({value}, {class_name(one.kind)})"
    read = f"{one.kind}_of({value})"
    return f"{read} or {_DEFAULTS[one.kind]}" if one.required else read


def _writer(kind: EventType) -> Iterator[str]:
    yield "    def columns(self) -> EventColumns:"
    yield f'        """Return what `NewEvent` takes for a {kind.name}."""'
    required = [one for one in kind.meta.values() if one.required]
    yield from _mapping("meta", "Routing", [(one.name, _meta_value(one)) for one in required])
    for one in kind.meta.values():
        if not one.required:
            yield from _set_unless_none("meta", one.name, _meta_value(one))
    for column in ("context", "result"):
        yield from _written_data(kind, column)
    yield "        return {"
    yield f'            "type": "{kind.name}",'
    yield '            "meta": meta,'
    for column in _written_columns(kind):
        yield f'            "{column}": self.{column},'
    for column in ("context", "result"):
        if (value := _whole_value(kind, column)) is not None:
            yield f'            "{column}": {value},'
    yield "        }"


def _written_columns(kind: EventType) -> Iterator[str]:
    yield from kind.columns
    for column in ("error", "current_item"):
        if column in kind.user_data and column not in kind.columns:
            yield column
    if kind.payload != "none":
        yield "payload_ref"


def _written_data(kind: EventType, column: str) -> Iterator[str]:
    declared = getattr(kind, column)
    if not isinstance(declared, tuple) or not declared:
        return
    required = [one for one in declared if one.required]
    yield from _mapping(column, "Json", [(one.name, _data_value(one)) for one in required])
    for one in declared:
        if not one.required:
            yield from _set_unless_none(column, one.name, _data_value(one))


def _whole_value(kind: EventType, column: str) -> str | None:
    declared = getattr(kind, column)
    if isinstance(declared, tuple):
        return f"{column} or None" if declared else None
    if column not in kind.user_data:
        return None
    return f"self.{column}" if declared is None else _data_value(declared)


def _mapping(name: str, value: str, items: list[tuple[str, str]]) -> Iterator[str]:
    if not items:
        yield f"        {name}: dict[str, {value}] = {{}}"
        return
    yield f"        {name}: dict[str, {value}] = {{"
    yield from (f'            "{key}": {written},' for key, written in items)
    yield "        }"


def _set_unless_none(mapping: str, name: str, value: str) -> Iterator[str]:
    yield f"        if self.{name} is not None:"
    yield f'            {mapping}["{name}"] = {value}'


def _meta_value(field: MetaField) -> str:
    return f"str(self.{field.name})" if field.kind == "id" else f"self.{field.name}"


def _data_value(one: DataField) -> str:
    if one.is_list:
        return f"[*self.{one.name}]"
    is_shape = one.kind not in _DATA_TYPES
    return f"json_of(self.{one.name})" if is_shape else f"self.{one.name}"
