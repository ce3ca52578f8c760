"""Names that nothing defines are empty in NoETL's spelling; `check` warns of them."""

from __future__ import annotations

import pytest

from streams.playbook.parse import check
from streams.playbook.problem import Severity

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t, spelling: noetl}\n"


def warned(template: str, more: str = "", top: str = "workload: {api_url: x}\n") -> list[str]:
    """Return the messages about a template in the tool of a step."""
    first = "  - {step: load/all, tool: {kind: noop, set: {ctx.n: 1, iter.page: 2}}}\n"
    tool = f'tool: [{{name: get, kind: http, url: "{template}", input: {{own: 1}}}}]'
    text = f"{HEAD}{top}workflow:\n{first}  - {{step: use, {tool}{more}}}\n"
    _, found = check(text)
    assert not [one for one in found if one.severity is Severity.ERROR]
    return [one.message for one in found if "nothing defines" in one.message]


@pytest.mark.parametrize("name", ["api_ulr", "nothing.here", "token(api_url)"])
def test_a_name_that_nothing_defines_is_a_warning(name: str) -> None:
    (message,) = warned(f"{{{{ {name} }}}}")
    assert repr(name.partition(".")[0].partition("(")[0]) in message


@pytest.mark.parametrize(
    "template",
    [
        *("{{ api_url }}", "{{ use.x }}", "{{ get.data }}", "{{ n }}", "{{ page }}", "{{ own }}"),
        *("{{ output.data }}", "{{ event.name }}", "{{ job.uuid }}", "{{ keychain.a.b }}"),
        *("{{ execution_id }}", "{{ iter.a }}", "{{ results.get }}", "{{ range(3) | list }}"),
        "{% for one in ctx.rows %}{{ one }}{% endfor %}",
    ],
)
def test_a_name_that_is_defined_is_not_mentioned(template: str) -> None:
    assert warned(template) == []


@pytest.mark.parametrize(
    "template",
    [
        "{{ other | default(1) }}",
        "{{ other.x.y | default(1) }}",
        "{{ other.x if other is defined else 1 }}",
        "{{ other.x if other else 1 }}",
        "{{ other or api_url }}",
        "{% if other %}{{ other }}{% endif %}",
    ],
)
def test_a_template_that_allows_for_a_missing_name_is_not_mentioned(template: str) -> None:
    assert warned(template) == []


def test_the_iterator_of_a_loop_is_defined() -> None:
    assert warned("{{ row.id }}", ", loop: {in: [1], iterator: row}") == []


def test_code_keeps_names_that_nothing_defines() -> None:
    text = f"{HEAD}workflow:\n  - {{step: a, tool: {{kind: python, code: '# {{{{ x }}}}'}}}}\n"
    assert not [one for one in check(text)[1] if "nothing defines" in one.message]
