"""Templates end: in time, in size, and inside the sandbox."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import Any

import pytest

from streams.playbook import sandbox
from streams.playbook.errors import ExpressionFailed
from streams.playbook.expressions import compile_value
from streams.playbook.sandbox_limits import MAX_ITEMS, MAX_TEXT

SCOPE: dict[str, Any] = {"big": "x" * (MAX_TEXT // 2 + 1), "now": datetime(2026, 1, 1, tzinfo=UTC)}


def render(template: str) -> Any:
    return compile_value(template).render(SCOPE)


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{{ loop([1]) }}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
        "{% endfor %}{{ n.x }}",
    ],
)
def test_a_runaway_template_is_ended(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "TIME_LIMIT_S", 0.1)
    began = monotonic()
    with pytest.raises(ExpressionFailed, match=r"took longer than 0\.1 s|RecursionError"):
        render(template)
    assert monotonic() - began < 5


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10 ** 9 }}",
        "{{ 10 ** 9 * 'a' }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ 10 ** 10 ** 10 ** 10 }}",
        "{{ 9 ** 99999999 }}",
        "{{ big + big }}",
        "{{ big ~ big }}",
        "{{ [big, big] | join }}",
        "{{ ''.join([big, big]) }}",
        "{{ big.replace('', big) }}",
        "{{ big | replace('x', 'xxxx') }}",
        "{{ 'a'.rjust(10 ** 9) }}",
        "{{ 'a' | center(10 ** 9) }}",
        "{{ 'a\\na' | indent(10 ** 9) }}",
        "{{ '%1000000000d' % 3 }}",
        "{{ '%*d' % (1000000000, 3) }}",
        "{{ '%1000000000d' | format(3) }}",
        "{{ '{:1000000000d}'.format(3) }}",
        "{{ '{:{}}'.format(3, 1000000000) }}",
        "{{ now.strftime('%1000000000d') }}",
        "{{ range(10 ** 9) }}",
        "{{ tojson([big, big]) }}",
        "{{ range(99999) | map('center', 4000000) | list }}",
        "{{ ([big] * 9999) | map('upper') | list }}",
        "{% set n = namespace(x=1) %}{% for i in range(99999) %}{% set n.x = [n.x, big.lower()] %}"
        "{% endfor %}",
        "{% set n = namespace(x=1) %}{% for i in range(999) %}{% set n.x = [n.x, [1] * 99999] %}"
        "{% endfor %}",
        "{{ big }}{{ big }}",
        "{% for i in range(3) %}{{ big }}{% endfor %}",
        "{% set n = namespace(x='aaaa') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}"
        "{% endfor %}",
    ],
)
def test_what_would_grow_too_large_is_refused_before_it_does(template: str) -> None:
    began = monotonic()
    with pytest.raises(ExpressionFailed, match=r"limit is|more than|too large"):
        render(template)
    assert monotonic() - began < 2


def test_a_large_value_of_the_scope_may_pass() -> None:
    scope = {"body": "x" * (MAX_TEXT + 1), "rows": [1] * (MAX_ITEMS + 1)}
    assert compile_value("{{ body }}").render(scope) is scope["body"]
    assert compile_value("{{ rows }}").render(scope) is scope["rows"]


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ now.__class__ }}",
        "{{ [].__class__.__base__.__subclasses__() }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{a.__class__}'.format(a=1) }}",
        "{{ '%s'.format_map({}) }}",
        "{{ range.__init__ }}",
        "{{ tojson.__globals__ }}",
        "{{ namespace(a=1).__init__ }}",
        "{{ (1).to_bytes(999999999, 'big') }}",
        "{{ [{'a': 1}] | map(attribute='__class__') | list }}",
        "{{ now.now() }}",
        "{{ now.today() }}",
        "{{ lipsum() }}",
    ],
)
def test_nothing_behind_the_data_can_be_reached(template: str) -> None:
    with pytest.raises(ExpressionFailed):
        render(template)


def test_nothing_that_throws_dice_or_tells_the_time_is_there() -> None:
    environment = sandbox.sandbox()
    assert not {"now", "random", "lipsum", "uuid"} & {*environment.globals, *environment.filters}


@pytest.mark.parametrize(
    "template", ["{{ namespace(a=1) }}", "{{ range }}", "{{ 2 ** 64 }}", "{{ 'inf' | float }}"]
)
def test_what_json_does_not_have_never_leaves(template: str) -> None:
    with pytest.raises(ExpressionFailed):
        render(template)


def test_a_plug_in_brings_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = sandbox.Sandbox({"double": lambda value: value * 2})
    monkeypatch.setattr("streams.playbook.template_compiler.sandbox", lambda **_: environment)
    monkeypatch.setattr("streams.playbook.expressions.sandbox", lambda **_: environment)
    assert render("{{ double(21) }}") == 42
    assert render("{{ 21 | double }}") == 42
    assert compile_value("{{ double(x) }}").names == {"x"}
