"""Nothing that an author writes is ignored: a key that nothing reads is named."""

from __future__ import annotations

import pytest

from streams.playbook.parse import check
from streams.playbook.problem import Problem, Severity
from streams.worker.rows.offsets import BadRange, bounded

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {path: p/q}\nworkflow:\n"


def problems(step: str, *, clients: bool = True) -> dict[str, Problem]:
    """Return the warnings and errors of a playbook with this step, by their places."""
    _, found = check(f"{HEAD}  - {{step: start, {step}}}\n", clients=clients)
    return {one.where: one for one in found if one.severity is not Severity.NOTE}


KEYSET = "{kind: postgres, dsn: d, query: q, key: k, zzz: 1}"
OF_NOETL = [
    ("http, url: u", "form"),
    ("http, url: u", "timeout_seconds"),
    ("playbook, path: p", "input"),
    ("playbook, path: p", "payload"),
    ("playbook, path: p", "timeout"),
    ("playbook, path: p", "return_step"),
    ("postgres, dsn: d, command: c", "commands"),
    ("postgres, dsn: d, command: c", "pool"),
    ("duckdb, command: c", "auth"),
    ("python, code: 'def main(): return 1'", "libs"),
    ("noop", "result"),
]
REFUSED = [
    ("tool: {kind: noop}, eval: [{else: {do: fail}}]", "workflow[0].eval"),
    ("tool: [{a: {kind: noop}}], action: x", "workflow[0].action"),
    ("tool: {kind: noop, spec: {resul: {store: kv}}}", "workflow[0].tool.spec.resul"),
    ("tool: {kind: noop, spec: {timeout: 5}}", "workflow[0].tool.spec.timeout"),
    (
        "tool: {kind: python, code: 'def main(): return 1', memory_bytes: 9}",
        "workflow[0].tool.memory_bytes",
    ),
    ("tool: {kind: python, code: 'def main(): return 1', module: m}", "workflow[0].tool.module"),
    (
        "tool: {kind: python, code: 'def main(): return 1', function: f}",
        "workflow[0].tool.function",
    ),
    ("tool: {kind: kafka, topic: t, value: 1, auth: k}", "workflow[0].tool.auth"),
    (
        "tool: {kind: kafka, topic: t, value: 1, bootstrap_servers: b}",
        "workflow[0].tool.bootstrap_servers",
    ),
    ("tool: {kind: playbook, path: a, return: x}", "workflow[0].tool.return"),
    (
        "tool: {kind: noop}, loop: {cursor: {kind: kafka, topic: t, auth: a}}",
        "workflow[0].loop.cursor.auth",
    ),
]


@pytest.mark.parametrize(("step", "where"), REFUSED)
def test_a_key_without_effect_is_refused_by_its_name(step: str, where: str) -> None:
    found = problems(step)
    assert where in found, found
    assert found[where].severity is Severity.ERROR
    assert "nothing reads" in found[where].message


@pytest.mark.parametrize(("step", "where"), REFUSED)
def test_a_registered_playbook_that_has_one_still_runs(step: str, where: str) -> None:
    found = problems(step, clients=False)
    assert found[where].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("step", "where"),
    [
        ("tool: {kind: noop, spec: {zzz: 1}}", "workflow[0].tool.spec.zzz"),
        ("tool: {kind: noop}, spec: {zzz: 1}", "workflow[0].spec.zzz"),
        ("tool: {kind: python, code: 'def main(): return 1', zzz: 1}", "workflow[0].tool.zzz"),
        ("tool: {kind: http, url: u, zzz: 1}", "workflow[0].tool.zzz"),
        ("tool: {kind: artifact, action: list, zzz: 1}", "workflow[0].tool.zzz"),
        ("tool: {kind: shell, cmds: [a], zzz: 1}", "workflow[0].tool.zzz"),
        ("tool: {kind: noop, auth: a}", "workflow[0].tool.auth"),
        (f"tool: {{kind: noop}}, loop: {{cursor: {KEYSET}}}", "workflow[0].loop.cursor.zzz"),
    ],
)
def test_any_other_key_that_nothing_reads_is_a_warning(step: str, where: str) -> None:
    assert problems(step)[where].severity is Severity.WARNING


@pytest.mark.parametrize(
    "step",
    [
        "tool: {kind: noop, spec: {timeout_s: 5, result: {store: kv}}}",
        "tool: {kind: python, code: 'def main(): return 1', args: {}, timeout: 5}",
        "tool: noop, eval: [{else: {do: fail}}]",
        "tool: {kind: noop}, loop: {cursor: {kind: kafka, topic: t, from: 3, to: 9}}",
    ],
)
def test_keys_that_act_are_not_mentioned(step: str) -> None:
    assert not [one for one in problems(step).values() if "nothing reads" in one.message]


def test_a_bounded_range_of_a_topic_reads_only_that_range() -> None:
    ranges = {0: (2, 10), 1: (0, 4), 2: (0, 100)}
    assert bounded(ranges, {"from": 3, "to": "6"}) == {0: (3, 6), 1: (3, 4), 2: (3, 6)}
    assert bounded(ranges, {"from": {"2": 50}, "to": {"0": 5}}) == {
        0: (2, 5),
        1: (0, 4),
        2: (50, 100),
    }
    assert bounded(ranges, {}) == ranges
    assert bounded(ranges, {"from": 1000}) == {}


@pytest.mark.parametrize("value", ["yesterday", -1, True, [1]])
def test_a_range_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(BadRange, match="`from` of the cursor"):
        bounded({0: (0, 5)}, {"from": value})  # type: ignore[dict-item]


@pytest.mark.parametrize("limit", ["duration_ms", "memory_bytes"])
def test_a_limit_that_would_end_a_frame_early_has_no_effect_on_a_claim(limit: str) -> None:
    cursor = "{kind: postgres, dsn: d, claim: 'UPDATE t SET by = :frame_id RETURNING *'}"
    step = f"tool: {{kind: noop}}, loop: {{cursor: {cursor}, frame_policy: {{{limit}: 9}}}}"
    found = problems(step)[f"workflow[0].loop.frame_policy.{limit}"]
    assert found.severity is Severity.WARNING
    assert "has no effect on a claim" in found.message


@pytest.mark.parametrize(("tool", "key"), OF_NOETL)
def test_a_key_that_only_the_other_spelling_has_is_a_warning(tool: str, key: str) -> None:
    found = problems(f"on_error: fail, tool: {{kind: {tool}, {key}: {{}}}}")
    assert found[f"workflow[0].tool.{key}"].severity is Severity.WARNING


def test_a_limit_in_seconds_that_is_no_number_is_refused() -> None:
    found = problems("tool: {kind: noop, spec: {timeout_s: '30'}}")
    assert "number of seconds" in found["workflow[0].tool.spec.timeout_s"].message


def test_a_key_of_a_returned_envelope_that_is_dropped_is_named() -> None:
    text = f"{HEAD}  - {{step: a}}\nreturn: {{status: success, data: 1, zzz: 2}}\n"
    _, found = check(text)
    assert "return.zzz" in [one.where for one in found if one.severity is Severity.WARNING]
