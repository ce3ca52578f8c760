"""`spec.rate`: what is accepted, and what a task then is."""

from __future__ import annotations

import pytest

from streams.playbook.model import Task
from streams.playbook.parse import check
from streams.playbook.rate import BadRate

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{path: t/t}}
workload: {{n: 5}}
workflow:
  - step: first
    tool: {{kind: noop}}
    next: [{{step: each}}]
  - step: each
    loop: {{in: "{{{{ [1] }}}}", iterator: row}}
    tool:
      - save:
          kind: postgres
          dsn: x
          command: INSERT INTO t VALUES (1)
          spec: {{rate: {rate}}}
      - after: {{kind: noop}}
"""


def task(rate: str) -> Task:
    playbook, problems = check(TEXT.format(rate=rate))
    assert playbook is not None, problems
    return playbook.steps["each"].tasks[0]


def test_a_rate_has_defaults_and_templates() -> None:
    rate = task("{per_second: 2.5}").rate
    assert rate is not None
    assert rate.render({}) == (2.5, 1, None)
    rate = task('{per_second: "{{ workload.n }}", burst: 3, key: "k-{{ iter.row }}"}').rate
    assert rate is not None
    assert rate.render({"workload": {"n": 5}, "iter": {"row": 7}}) == (5.0, 3, "k-7")


@pytest.mark.parametrize("n", [0, -1, "many", None, True])
def test_a_rendered_rate_that_is_no_number_is_refused(n: object) -> None:
    rate = task('{per_second: "{{ workload.n }}"}').rate
    assert rate is not None
    with pytest.raises(BadRate, match=r"spec\.rate\.per_second"):
        rate.render({"workload": {"n": n}})


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("{per_second: 0}", "is not a number above 0"),
        ("{per_second: 10, burst: 1000000}", "is not a number above 0"),
        ("{burst: 3}", "'per_second' is missing"),
        ("{per_second: 5, per_minute: 5}", "unknown key 'per_minute'"),
        ("5", "should be a mapping"),
        ('{per_second: "{{ nobody }}"}', "nobody"),
    ],
)
def test_a_bad_rate_is_reported(rate: str, words: str) -> None:
    _, problems = check(TEXT.format(rate=rate))
    assert any(words in str(problem) for problem in problems), problems


def test_a_save_with_a_rate_is_not_batched() -> None:
    assert not task("{per_second: 5}").deferrable


def test_results_that_only_a_rate_reads_are_read() -> None:
    playbook, _ = check(TEXT.format(rate='{per_second: 1, key: "{{ first.data.key }}"}'))
    assert playbook is not None
    assert ("first", "data", "key") in playbook.steps["each"].key_paths
    assert "first" in playbook.steps["each"].reads


def test_the_other_spelling_has_rates_too() -> None:
    text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t/t}\n"
    text += "workflow:\n  - step: start\n    tool:\n      - name: ask\n        kind: http\n"
    text += "        url: http://127.0.0.1:9/\n        spec: {rate: {per_second: 7}}\n"
    playbook, problems = check(text)
    assert playbook is not None, problems
    found = playbook.steps["start"].tasks[0]
    assert found.spelling == "noetl"
    assert found.rate is not None
    assert found.rate.render({})[0] == 7.0
