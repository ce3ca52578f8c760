"""Decimals and times of databases are text to templates and typed in a frame's columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from streams.events.typed_text import typed_text
from streams.payload.arrow.rows import decode_rows, encode_rows, read_table
from streams.playbook.errors import ExpressionFailed
from streams.playbook.expressions import compile_value
from streams.worker.attempt.frame import FrameRunner
from streams.worker.tools.postgres.values import jsonable
from tests.support.events.examples import example, sealer
from tests.support.worker.memory import FakeTool, World, loop_step, ok, task

AT = datetime(2026, 1, 31, 10, tzinfo=UTC)
VALUES = some.one_of(
    some.none(),
    some.decimals(),
    some.dates(),
    some.datetimes(),
    some.datetimes(timezones=some.just(UTC)),
    some.text(max_size=3),
    some.integers(-5, 5),
)


def kinds(rows: list[Any]) -> dict[str, str]:
    return {field.name: str(field.type) for field in read_table(encode_rows(rows).data).schema}


def test_columns_have_the_types_of_the_database() -> None:
    rows: list[Any] = [
        {"sum": jsonable(Decimal("1.50")), "at": jsonable(AT), "day": jsonable(date(2026, 1, 31))},
        {"sum": jsonable(Decimal("22.00")), "at": None, "day": jsonable(date(2026, 2, 1))},
    ]
    assert kinds(rows) == {
        "sum": "decimal128(4, 2)",
        "at": "timestamp[us, tz=UTC]",
        "day": "date32[day]",
    }
    assert decode_rows(encode_rows(rows).data)[0] == {
        "sum": "1.50",
        "at": "2026-01-31T10:00:00+00:00",
        "day": "2026-01-31",
    }


@pytest.mark.parametrize(
    "values",
    [
        [typed_text(Decimal("1.5")), typed_text(Decimal("1.25"))],
        [typed_text(Decimal("1.5")), "unknown"],
        [typed_text(AT), typed_text(date(2026, 1, 31))],
        [jsonable(datetime(2026, 1, 31)), jsonable(datetime.max)],
    ],
    ids=["digits that differ", "beside text", "of two kinds", "without a zone"],
)
def test_what_would_not_come_back_as_it_was_stays_text(values: list[Any]) -> None:
    assert kinds([{"x": value} for value in values]) == {"x": "string"}


@given(some.lists(VALUES, max_size=6))
def test_rows_come_back_as_json_has_them(values: list[Any]) -> None:
    rows = [{"x": jsonable(value), "inside": [jsonable(value)]} for value in values]
    assert decode_rows(encode_rows(rows).data) == orjson.loads(orjson.dumps(rows))


async def test_it_stays_typed_through_the_templates_of_a_frame() -> None:
    query = FakeTool(lambda config, call: ok({"sum": typed_text(Decimal("1.50"))}))
    passed = FakeTool(lambda config, call: ok(dict(config)))
    tasks = task("query", "q", {}), task("pass", "p", {"sum": "{{ query.data.sum }}"})
    here = World(loop_step(*tasks), {"q": query, "p": passed})
    await FrameRunner(here.ports, here.options()).run(await here.frame([1, 2]))
    ref = (await here.last()).payload_ref
    assert ref is not None
    assert str(read_table(await here.payloads.get(ref)).schema.field("sum").type) == (
        "decimal128(3, 2)"
    )


def test_templates_see_text_and_nothing_else() -> None:
    scope = {"sum": typed_text(Decimal("1.50"))}
    assert compile_value("{{ sum + '0' }}").render(scope) == "1.500"
    assert compile_value("{{ sum is string }}").render(scope) is True
    with pytest.raises(ExpressionFailed):
        compile_value("{{ sum._was }}").render(scope)


@pytest.mark.parametrize("natively", [False, True])
def test_an_event_that_carries_it_is_one_that_carries_text(natively: bool) -> None:
    seal = sealer(natively=natively)
    one, other = (
        seal(example("command.completed", result={"data": {"sum": text}}), 5001)
        for text in (typed_text(Decimal("1.50")), "1.50")
    )
    assert (one.envelope, one.digest) == (other.envelope, other.digest)
