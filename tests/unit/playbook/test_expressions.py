"""Templates: types kept, strings never read again, nothing undefined passes silently."""

from __future__ import annotations

from collections import UserDict
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.playbook.errors import BadTemplate, ExpressionFailed
from streams.playbook.expressions import compile_value

SCOPE: dict[str, Any] = {
    "workload": {"url": "http://api", "count": 3, "empty": "", "none": None},
    "iter": {"page": 2, "items": ["a", "b"], "keys": "mine", "row": {"id": "007"}},
    "outcome": {"status": "error", "http": {"status": 503}},
    "day": date(2026, 1, 2),
    "moment": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "price": Decimal("1.10"),
}


def render(structure: object, **names: object) -> Any:
    return compile_value(structure).render({**SCOPE, **names})


@pytest.mark.parametrize("text", ["12345", "1e5", "None", "true", "", " 7 ", "[1]", "{'a': 1}"])
def test_strings_survive_whatever_they_look_like(text: str) -> None:
    assert render("{{ value }}", value=text) == text
    assert render("{{ value | default('x') }}", value=text) == text
    assert render({"a": ["{{ value }}"]}, value=text) == {"a": [text]}
    assert render("<{{ value }}>", value=text) == f"<{text}>"


PATH, LOOKUP = compile_value("{{ value }}"), compile_value("{{ [value][0] }}")


@settings(deadline=None)
@given(st.text())
def test_any_text_of_the_scope_comes_out_as_it_went_in(text: str) -> None:
    assert PATH.render({"value": text}) == text
    assert LOOKUP.render({"value": text}) == text


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{ workload.count }}", 3),
        ("{{ iter.page + 1 }}", 3),
        ("{{ iter['page'] }}", 2),
        ("{{ iter.items[1] }}", "b"),
        ("{{ workload.none }}", None),
        ("{{ workload.count > 2 }}", True),
        ("{{ 5 }}", 5),
        ("{{ 'None' }}", "None"),
        ("{{ '1e5' }}", "1e5"),
        ("{{ 1.5 }}", 1.5),
        ("{{ iter.row }}", {"id": "007"}),
        ("{{ {'a': (1, 2)} }}", {"a": [1, 2]}),
        ("{{ range(3) | map('string') }}", ["0", "1", "2"]),
        ("{{ iter.row.items() }}", [["id", "007"]]),
        ("{{ '[1, {\"a\": 2}]' | fromjson }}", [1, {"a": 2}]),
        ("{{ 'yes' if iter.page == 2 else 'no' }}", "yes"),
    ],
)
def test_one_expression_gives_the_value_itself(template: str, value: object) -> None:
    found = render(template)
    assert found == value
    assert type(found) is type(value)


def test_white_space_around_one_expression_does_not_count() -> None:
    assert render("\n  {{ iter.page }}\n") == 2


def test_text_around_an_expression_makes_a_text() -> None:
    assert render("{{ workload.url }}/p/{{ iter.page }}") == "http://api/p/2"
    assert render("a\n{{ iter.page }}\n") == "a\n2\n"
    assert render("{% for item in iter.items %}{{ item }};{% endfor %}") == "a;b;"
    assert render("{{ workload.count ~ '' }}") == "3"


def test_text_without_expressions_is_never_touched() -> None:
    for text in ("", "plain", "a { b } c\n", "100% {", "# {"):
        assert render(text) == text


def test_structures_keep_their_shape_and_constants() -> None:
    structure = {"a": 1, "b": [True, None, "{{ iter.page }}"], "c": {"d": "x{{ iter.page }}"}}
    assert render(structure) == {"a": 1, "b": [True, None, 2], "c": {"d": "x2"}}
    assert list(render(structure)) == ["a", "b", "c"]


def test_rendering_twice_gives_mappings_of_their_own() -> None:
    template = compile_value({"a": "{{ iter.page }}"})
    first = template.render(SCOPE)
    assert isinstance(first, dict)
    first["a"] = "changed"
    assert template.render(SCOPE) == {"a": 2}


def test_data_wins_over_methods() -> None:
    assert render("{{ iter.items }}") == ["a", "b"]
    assert render("{{ iter.keys }}") == "mine"
    assert render("{{ iter.row.keys() | list }}") == ["id"]
    assert render("{{ rows.items }}", rows=UserDict(items=1)) == 1


def test_types_of_database_rows_pass_through() -> None:
    assert render("{{ price }}") == Decimal("1.10")
    assert render("{{ [day, price][0] }}") == date(2026, 1, 2)
    assert render("on {{ day }}") == "on 2026-01-02"
    assert render("{{ moment.year }}-{{ moment.strftime('%m') }}") == "2026-01"


def test_json_is_written_and_read() -> None:
    assert render("{{ iter.row | tojson }}") == '{"id":"007"}'
    assert render("{{ tojson([price, day]) }}") == '["1.10","2026-01-02"]'


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ nothing }}", "'nothing' is not defined"),
        ("{{ iter.pgae }}", "'pgae' is not defined: there is page.*did you mean 'page'"),
        ("{{ iter.nothing.deeper }}", "'nothing' is not defined"),
        ("{{ nothing == 1 }}", "'nothing' is not defined"),
        ("{{ 'x' if nothing }}", "'nothing' is not defined"),
        ("x{{ nothing }}", "'nothing' is not defined"),
        ("{% for a in nothing %}{% endfor %}", "'nothing' is not defined"),
        ("{{ [nothing] }}", "'nothing' is not defined"),
        ("{{ tojson(nothing) }}", "'nothing' is not defined"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ iter.row.items }}", "did you mean to call it, items()"),
    ],
)
def test_what_is_not_there_is_said_with_its_expression(template: str, message: str) -> None:
    with pytest.raises(ExpressionFailed, match=message) as caught:
        render(template)
    assert template in str(caught.value)


def test_a_default_stands_in_along_the_whole_path() -> None:
    assert render("{{ nothing | default(7) }}") == 7
    assert render("{{ iter.nothing.deeper | default(false) }}") is False
    assert render("{{ nothing is defined }}") is False


def test_names_are_those_the_scope_must_have() -> None:
    template = compile_value({"a": "{{ iter.x + y }}", "b": ["{{ tojson(z) }}", "{{ range(2) }}"]})
    assert template.names == {"iter", "y", "z"}
    assert compile_value("{% for i in rows %}{{ i }}{% endfor %}").names == {"rows"}
    assert compile_value("constant").names == frozenset()


@pytest.mark.parametrize(
    "text",
    ["{{ x", "{{ x | nofilter }}", "{% macro f() %}{% endmacro %}", "{% include 'x' %}", "{{ }}"],
)
def test_a_text_that_is_no_template_is_refused_when_it_is_compiled(text: str) -> None:
    with pytest.raises(BadTemplate):
        compile_value(text)


def test_the_scope_is_never_changed() -> None:
    scope: dict[str, Any] = {"a": [1], "d": {}}
    for template in ("{{ a.append(2) }}", "{{ d.update({'x': 1}) }}", "{{ d.setdefault('x', 1) }}"):
        with pytest.raises(ExpressionFailed):
            compile_value(template).render(scope)
    compile_value("{% set a = 5 %}{{ a }}").render(scope)
    assert scope == {"a": [1], "d": {}}
