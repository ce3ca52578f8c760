"""Frames whose schemas differ are one table, and every row is what it was."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.events.model import Json
from streams.payload.arrow.rows import decode_rows, encode_rows, read_table, rows_of
from streams.payload.arrow.unify import unify
from tests.unit.payload.test_rows import exact, objects, values


def tables(*frames: list[Any]) -> list[pa.Table]:
    return [read_table(encode_rows(rows).data) for rows in frames]


@given(st.lists(objects | st.lists(values, max_size=4), max_size=4))
def test_the_rows_of_the_whole_are_the_rows_of_the_parts(frames: list[list[Json]]) -> None:
    whole = unify(tables(*frames))
    assert exact(rows_of(whole)) == exact([row for rows in frames for row in rows])


def test_frames_that_agree_keep_their_types_and_are_not_copied() -> None:
    one, other = tables([{"id": 1}], [{"id": 2}])
    whole = unify([one, other])
    assert whole.schema.equals(one.schema, check_metadata=True)
    assert whole.column("id").chunk(0).buffers()[1].address == (
        one.column("id").chunk(0).buffers()[1].address
    )


def test_a_column_of_nulls_takes_the_type_that_others_have() -> None:
    whole = unify(tables([{"id": None}], [{"id": 2}]))
    assert whole.schema.field("id").type == pa.int64()
    assert rows_of(whole) == [{"id": None}, {"id": 2}]


def test_a_column_that_comes_later_is_missing_before() -> None:
    whole = unify(tables([{"id": 1}], [{"id": 2, "name": "x"}]))
    assert whole.schema.field("name").type == pa.string()
    assert rows_of(whole) == [{"id": 1}, {"id": 2, "name": "x"}]


def test_whole_numbers_and_fractions_stay_apart() -> None:
    whole = unify(tables([{"x": 1}], [{"x": 1.0}], [{"x": "1"}], [{"x": True}]))
    assert whole.schema.field("x").metadata == {b"noetl.encoding": b"json"}
    assert exact(rows_of(whole)) == exact([{"x": 1}, {"x": 1.0}, {"x": "1"}, {"x": True}])


def test_what_is_no_number_is_written_out() -> None:
    whole = unify(tables([{"x": float("nan")}, {"x": float("-inf")}], [{"x": "text"}]))
    assert rows_of(whole) == [{"x": "NaN"}, {"x": "-Infinity"}, {"x": "text"}]


def test_nothing_is_an_empty_table() -> None:
    assert unify([]).num_rows == 0


def test_decimals_have_precision_and_scale_and_are_widened() -> None:
    first, second = tables([{"x": Decimal("1.50")}, {"x": None}], [{"x": Decimal("-12345.6")}])
    assert first.schema.field("x").type == pa.decimal128(3, 2)
    whole = unify([first, second])
    assert whole.schema.field("x").type == pa.decimal128(7, 2)
    assert rows_of(whole) == [{"x": "1.50"}, {"x": None}, {"x": "-12345.60"}]


@pytest.mark.parametrize("text", ["1" * 38, "1" * 76, "1" * 100, "NaN", "1E+5", "0.000", "-0.5"])
def test_every_decimal_comes_back_as_text(text: str) -> None:
    assert decode_rows(encode_rows([{"x": Decimal(text)}]).data) == [
        {"x": format(Decimal(text), "f")}
    ]


def test_times_are_in_utc_with_their_unit() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    table = read_table(encode_rows([{"at": at, "day": date(2026, 3, 1)}]).data)
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("day").type == pa.date32()
    assert rows_of(table) == [{"at": "2026-03-01T10:00:00.000005+00:00", "day": "2026-03-01"}]


def test_a_time_without_a_zone_is_given_none() -> None:
    rows = [{"at": datetime(2026, 3, 1, 12)}]
    assert decode_rows(encode_rows(rows).data) == [{"at": "2026-03-01T12:00:00"}]


def test_a_time_that_utc_does_not_have_is_text_in_its_own_zone() -> None:
    rows = [{"at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))}]
    assert decode_rows(encode_rows(rows).data) == [{"at": "9999-12-31T23:59:59.999999-05:00"}]


def test_times_and_decimals_inside_others_are_text() -> None:
    rows = [{"x": [Decimal("1.10"), datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1)]}]
    assert decode_rows(encode_rows(rows).data) == [
        {"x": ["1.10", "2026-03-01T00:00:00+00:00", "2026-03-01"]}
    ]


def test_other_writers_may_use_types_that_we_do_not() -> None:
    table = pa.table(
        {
            "n": pa.array([1], pa.uint8()),
            "d": pa.array([Decimal("1.5")]),
            "s": pa.array([{"a": [datetime(2026, 1, 1)]}]),
            "b": pa.array([b"\x01"]),
        }
    )
    assert rows_of(table) == [
        {"n": 1, "d": "1.5", "s": {"a": ["2026-01-01T00:00:00"]}, "b": "\\x01"}
    ]
