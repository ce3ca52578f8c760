"""The rules of schema evolution, each broken on purpose, and what must stay allowed."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.schema.avro_parse import BadSchema, parse
from streams.schema.compatibility import breaks

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
DIGEST = {"type": "fixed", "name": "Digest", "size": 32}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "uri", "type": "string"}]}


def record(*fields: dict[str, Any], name: str = "Event", **more: Any) -> str:
    return json.dumps(
        {"type": "record", "name": name, "namespace": "noetl", "fields": list(fields), **more}
    )


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def found(new: str, old: str) -> set[tuple[str, str]]:
    return {(one.direction, one.path) for one in breaks(new, old, old_name="version 1")}


ID = field("id", "long")
BOTH = {"backward", "forward"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([ID], [ID, field("x", "string", default="")], id="field added with default"),
        pytest.param([ID, field("x", "int", default=0)], [ID], id="optional field removed"),
        pytest.param([ID], [field("id", "long", doc="new words")], id="documentation"),
        pytest.param([ID, field("x", "int")], [field("x", "int"), ID], id="order of fields"),
        pytest.param([field("x", "string")], [field("x", "bytes")], id="string and bytes"),
        pytest.param(
            [field("c", {**COLOUR, "default": "RED"})],
            [field("c", {**COLOUR, "symbols": ["RED", "BLUE", "GREEN"], "default": "RED"})],
            id="symbol added to an enum with a default",
        ),
        pytest.param(
            [field("x", ["null", "string"])], [field("x", ["string", "null"])], id="branch order"
        ),
        pytest.param(
            [field("x", ["null", "string"])], [field("x", ["null", "bytes"])], id="branch promoted"
        ),
        pytest.param(
            [field("x", "int", default=1)],
            [field("y", "int", default=1, aliases=["x"])],
            id="field with a default renamed",
        ),
    ],
)
def test_a_change_that_both_sides_can_read_is_allowed(old: list[Any], new: list[Any]) -> None:
    assert found(record(*new), record(*old)) == set()


@pytest.mark.parametrize(
    ("old", "new", "directions", "path"),
    [
        pytest.param([ID], [ID, field("x", "int")], {"backward"}, "Event.x", id="added bare"),
        pytest.param([ID, field("x", "int")], [ID], {"forward"}, "Event.x", id="removed bare"),
        pytest.param(
            [field("x", "int")], [field("x", "long")], {"forward"}, "Event.x", id="widened"
        ),
        pytest.param(
            [field("x", "long")], [field("x", "int")], {"backward"}, "Event.x", id="narrowed"
        ),
        pytest.param(
            [field("x", "float")], [field("x", "double")], {"forward"}, "Event.x", id="float"
        ),
        pytest.param(
            [field("x", "long")], [field("x", "string")], BOTH, "Event.x", id="type changed"
        ),
        pytest.param(
            [field("x", "string")],
            [field("x", ["null", "string"])],
            {"forward"},
            "Event.x",
            id="made nullable",
        ),
        pytest.param(
            [field("x", ["null", "string"])],
            [field("x", "string")],
            {"backward"},
            "Event.x",
            id="no longer nullable",
        ),
        pytest.param(
            [field("x", ["null", "string"])],
            [field("x", ["null", "string", "long"])],
            {"forward"},
            "Event.x",
            id="union branch added",
        ),
        pytest.param(
            [field("x", ["null", "string", "long"])],
            [field("x", ["null", "string"])],
            {"backward"},
            "Event.x",
            id="union branch removed",
        ),
        pytest.param(
            [field("c", COLOUR)],
            [field("c", {**COLOUR, "symbols": ["RED"]})],
            {"backward"},
            "Event.c",
            id="symbol removed",
        ),
        pytest.param(
            [field("c", COLOUR)],
            [field("c", {**COLOUR, "symbols": ["RED", "BLUE", "GREEN"]})],
            {"forward"},
            "Event.c",
            id="symbol added",
        ),
        pytest.param(
            [field("d", DIGEST)], [field("d", {**DIGEST, "size": 16})], BOTH, "Event.d", id="size"
        ),
        pytest.param(
            [field("d", DIGEST)],
            [field("d", {**DIGEST, "name": "Hash"})],
            BOTH,
            "Event.d",
            id="fixed renamed",
        ),
        pytest.param(
            [field("p", INNER)],
            [field("p", {**INNER, "name": "Other", "aliases": ["Inner"]})],
            {"forward"},
            "Event.p",
            id="record renamed with an alias: old readers do not know the alias",
        ),
        pytest.param(
            [field("p", {"type": "array", "items": INNER})],
            [field("p", {"type": "array", "items": {**INNER, "fields": []}})],
            {"forward"},
            "Event.p[].uri",
            id="inside a list",
        ),
        pytest.param(
            [field("p", {"type": "map", "values": ["null", INNER]})],
            [field("p", {"type": "map", "values": ["null", {**INNER, "fields": []}]})],
            {"forward"},
            "Event.p{}.uri",
            id="inside a map, inside a union",
        ),
        pytest.param(
            [field("t", {"type": "long", "logicalType": "timestamp-millis"})],
            [field("t", {"type": "long", "logicalType": "timestamp-micros"})],
            BOTH,
            "Event.t",
            id="another logical type",
        ),
        pytest.param(
            [field("n", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})],
            [field("n", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})],
            BOTH,
            "Event.n",
            id="another scale",
        ),
        pytest.param(
            [field("x", {"type": "array", "items": "int"})],
            [field("x", {"type": "map", "values": "int"})],
            BOTH,
            "Event.x",
            id="list became map",
        ),
    ],
)
def test_a_break_names_the_field_and_the_direction(
    old: list[Any], new: list[Any], directions: set[str], path: str
) -> None:
    assert found(record(*new), record(*old)) == {(one, path) for one in directions}


def test_a_renamed_root_record_is_a_break_in_both_directions() -> None:
    directions = {one.direction for one in breaks(record(ID, name="Fact"), record(ID))}
    assert directions == BOTH


def test_a_changed_namespace_is_a_renamed_record() -> None:
    assert breaks(record(ID, namespace="other"), record(ID))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            [ID],
            [ID, field("x", "int")],
            ["version 1", "no default", "give the new field a default"],
        ),
        ([ID, field("x", "int")], [ID], ["version 1 needs", "keep the field"]),
        ([field("c", COLOUR)], [field("c", {**COLOUR, "symbols": ["RED"]})], ["BLUE", "removed"]),
        ([field("d", DIGEST)], [field("d", {**DIGEST, "size": 16})], ["32 bytes", "16"]),
        ([field("x", "long")], [field("x", "string")], ["long", "string", "new field"]),
    ],
)
def test_a_break_says_why_and_what_to_do(old: list[Any], new: list[Any], words: list[str]) -> None:
    text = " ".join(map(str, breaks(record(*new), record(*old), old_name="version 1")))
    assert [word for word in words if word not in text] == []


def test_a_recursive_record_is_judged_once_and_ends() -> None:
    node = [field("value", "int"), field("next", ["null", "Event"])]
    changed = [field("value", "string"), field("next", ["null", "Event"])]
    assert found(record(*changed), record(*node)) == {(one, "Event.value") for one in BOTH}


def test_a_break_inside_a_shared_record_is_not_hidden_by_a_failed_guess() -> None:
    """Trying a union's branches must not mark the records met on the way as judged."""
    outer = {"type": "record", "name": "Outer", "fields": [field("inner", INNER)]}
    broken = {
        "type": "record",
        "name": "Outer",
        "fields": [field("inner", {**INNER, "fields": []})],
    }
    old = record(field("a", ["null", outer]), field("b", "Inner"))
    new = record(field("a", ["null", broken]), field("b", "Inner"))
    assert ("forward", "Event.a.inner.uri") in found(new, old)


@pytest.mark.parametrize(
    ("schema", "path", "words"),
    [
        ("{", "schema", "not JSON"),
        (record(field("x", "strnig")), "Event.x", "not defined"),
        (record(field("x", "int", default="1")), "Event.x", "not of type int"),
        (record(field("x", ["null", "int"], default=1)), "Event.x", "first branch"),
        (record(field("x", "int"), field("x", "int")), "Event.x", "two fields"),
        (record(field("x", ["int", "int"])), "Event.x", "two branches"),
        (record(field("x", {**COLOUR, "default": "PINK"})), "Event.x", "PINK"),
        (record(field("x", {**COLOUR, "symbols": []})), "Event.x", "symbols"),
        (record(field("x", COLOUR), field("y", COLOUR)), "Event.y", "twice"),
        (record({"name": "x"}), "Event.x", "no type"),
        (record(field("x", INNER, default={})), "Event.x", "uri"),
        (record(field("x", {"type": "array", "items": "int"}, default=["a"])), "Event.x", "'a'"),
        (record(field("x", "int", default=2**31)), "Event.x", "not of type int"),
        (record(field("x", "boolean", default=1)), "Event.x", "not of type boolean"),
    ],
)
def test_a_schema_that_is_not_avro_is_refused_by_path(schema: str, path: str, words: str) -> None:
    with pytest.raises(BadSchema) as refused:
        parse(schema)
    assert refused.value.path == path
    assert words in refused.value.why


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (record(field("x", {**COLOUR, "symbols": ["RED", "1-BLUE"]})), "symbol"),
        (record(field("x", {**COLOUR, "symbols": ["RED", 5]})), "symbol"),
        (record(field("x", DECIMAL)), "scale"),
        (record(field("x", "int", aliases="y")), "aliases"),
    ],
)
def test_a_schema_that_fastavro_refuses_is_refused(schema: str, words: str) -> None:
    with pytest.raises(BadSchema) as refused:
        parse(schema)
    assert words in refused.value.why


PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
SAMPLES: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 7,
    "long": 2**40,
    "float": 0.5,
    "double": 0.25,
    "bytes": b"abc",
    "string": "abc",
}
UNIONS = st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=4, unique=True)
KINDS = st.one_of(st.sampled_from(PRIMITIVES), UNIONS)
FIELDS = st.dictionaries(st.sampled_from("abc"), KINDS, max_size=3)


@given(writer=FIELDS, reader=FIELDS)
def test_what_is_called_readable_is_read_by_fastavro(
    writer: dict[str, Any], reader: dict[str, Any]
) -> None:
    """An independent implementation agrees, for every value the writer could write."""
    old = record(*(field(name, kind) for name, kind in writer.items()))
    new = record(*(field(name, kind) for name, kind in reader.items()))
    if any(one.direction == "backward" for one in breaks(new, old)):
        return
    branches = {name: kind if isinstance(kind, list) else [kind] for name, kind in writer.items()}
    for step in range(max((len(kinds) for kinds in branches.values()), default=1)):
        value = {name: SAMPLES[kinds[step % len(kinds)]] for name, kinds in branches.items()}
        out = io.BytesIO()
        fastavro.schemaless_writer(out, json.loads(old), value)
        out.seek(0)
        read = fastavro.schemaless_reader(out, json.loads(old), json.loads(new))
        assert isinstance(read, dict)
        assert set(read) == set(reader)
