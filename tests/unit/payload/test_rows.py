"""Rows survive the trip through Arrow exactly."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.events.model import Json
from streams.payload.arrow.rows import decode_rows, encode_rows
from streams.payload.errors import PayloadCorrupt

text = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(text, v, max_size=3), max_leaves=6
)
objects = st.lists(st.dictionaries(st.sampled_from("abc") | text, values, max_size=4), max_size=6)


def exact(rows: list[Json]) -> str:
    """Tell 1 from 1.0 and from True, and -0.0 from 0.0; the order of keys does not matter."""

    def ordered(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: ordered(value[key]) for key in sorted(value)}
        return [ordered(v) for v in value] if isinstance(value, list) else value

    return repr(ordered(rows))


@given(objects | st.lists(values, max_size=6))
def test_rows_come_back_exactly(rows: list[Json]) -> None:
    encoded = encode_rows(rows)
    assert encoded.row_count == len(rows)
    assert exact(decode_rows(encoded.data)) == exact(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}, {}],
        [{"a": None}, {}],
        [{"a": 1}, {}],
        [{"a": 2**63}, {"a": -(2**63)}],
        [{"a": {"deep": 2**70}}],
        [{"value": 1}],
        ["12345", "1e5", "None", "true", ""],
        [1, 1.0, True],
    ],
    ids=repr,
)
def test_the_awkward_ones_come_back_exactly(rows: list[Json]) -> None:
    assert exact(decode_rows(encode_rows(rows).data)) == exact(rows)


def test_columns_of_one_kind_have_arrow_types_that_others_can_read() -> None:
    rows: list[Json] = [{"id": 1, "name": "a", "x": 0.5, "ok": True, "tags": ["t"]}]
    schema = pa.ipc.open_stream(encode_rows(rows).data).schema
    assert [str(t) for t in schema.types] == [
        *("int64", "string", "double", "bool"),
        "list<item: string>",
    ]


def test_the_same_rows_give_the_same_bytes_and_another_schema_another_digest() -> None:
    first = encode_rows([{"id": 1}])
    assert first == encode_rows([{"id": 1}])
    assert first.schema_digest == encode_rows([{"id": 2}, {"id": 3}]).schema_digest
    assert first.schema_digest != encode_rows([{"id": "1"}]).schema_digest


@pytest.mark.parametrize(
    "value", [{1: 2}, {"a": {1: 2}}, {"a": object()}, {"a": {"b": 2**70, 1: 2}}]
)
def test_what_is_not_json_is_refused(value: Json) -> None:
    with pytest.raises(TypeError):
        encode_rows([value])


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_streams_give_rows_or_a_named_error_and_never_a_crash(
    damage: list[tuple[int, int]],
) -> None:
    rows: list[Json] = [{"id": n, "name": f"n{n}", "tags": [n], "x": None} for n in range(20)]
    data = bytearray(encode_rows(rows).data)
    for place, byte in damage:
        data[place % len(data)] = byte
    with suppress(PayloadCorrupt):
        decode_rows(bytes(data))


def test_other_bytes_are_no_rows() -> None:
    with pytest.raises(PayloadCorrupt):
        decode_rows(b"not arrow")
