"""Nothing in NoETL's spelling is ignored: a key without effect is named."""

from __future__ import annotations

import pytest

from streams.playbook.parse import check
from streams.playbook.problem import Severity

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t, spelling: noetl}\n"
NOOP = "tool: {kind: noop}"
TRANSFER = "tool: {kind: transfer, source: {type: http, zzz: 1}, target: {type: postgres, zzz: 1}}"

WARNED = [
    (f"{NOOP}, eval: []", "", "workflow[0].eval"),
    (f"{NOOP}, sink: {{}}", "", "workflow[0].sink"),
    (f"{NOOP}, when: x", "", "workflow[0].when"),
    (NOOP, "return: 1\n", "return"),
    ("tool: {kind: noop, spec: {resul: 1}}", "", "workflow[0].tool.spec.resul"),
    ("tool: {kind: noop, spec: {timeout: 1}}", "", "workflow[0].tool.spec.timeout"),
    ("tool: {kind: noop, auth: a}", "", "workflow[0].tool.auth"),
    ("tool: {kind: python, code: result = 1, module: m}", "", "workflow[0].tool.module"),
    (
        "tool: {kind: python, code: result = 1, memory_bytes: 1}",
        "",
        "workflow[0].tool.memory_bytes",
    ),
    ("tool: {kind: kafka, topic: t, value: 1, auth: a}", "", "workflow[0].tool.auth"),
    ("tool: {kind: playbook, path: p, return: x}", "", "workflow[0].tool.return"),
    ("tool: {kind: postgres, auth: a, command: c, rows: []}", "", "workflow[0].tool.rows"),
    (TRANSFER, "", "workflow[0].tool.source.zzz"),
    (TRANSFER, "", "workflow[0].tool.target.zzz"),
    (f"{NOOP}, loop: {{in: [1], zzz: 1}}", "", "workflow[0].loop.zzz"),
    (f"{NOOP}, loop: {{in: [1], spec: {{zzz: 1}}}}", "", "workflow[0].loop.spec.zzz"),
    (NOOP, "keychain: [{name: a, kind: static, map: {}, zzz: 1}]\n", "keychain[0].zzz"),
]
NOTED = [
    ("tool: {kind: postgres, auth: a, command: c, pool: x}", "", "workflow[0].tool.pool"),
    (NOOP, "keychain: [{name: a, kind: static, map: {}, scope: x}]\n", "keychain[0].scope"),
    (
        NOOP,
        "keychain: [{name: a, kind: bearer, token: t, auto_renew: true}]\n",
        "keychain[0].auto_renew",
    ),
    (NOOP, "executor: {profile: auto}\n", "executor.profile"),
    (NOOP, "executor: {spec: {no_next_is_error: true}}\n", "executor.spec.no_next_is_error"),
    (NOOP, "tracing: {enabled: true}\n", "tracing"),
    (NOOP, "spec: {a: 1}\n", "spec"),
]
FRAME = "loop: {cursor: {kind: postgres, auth: a, claim: c}, spec: {mode: cursor, frame: FRAME}}"


def found(step: str, top: str = "") -> dict[str, Severity]:
    _, problems = check(f"{HEAD}{top}workflow:\n  - {{step: start, {step}}}\n")
    return {one.where: one.severity for one in problems}


@pytest.mark.parametrize(("step", "top", "where"), WARNED)
def test_a_key_that_nothing_reads_is_a_warning(step: str, top: str, where: str) -> None:
    assert found(step, top)[where] is Severity.WARNING


@pytest.mark.parametrize(("step", "top", "where"), NOTED)
def test_a_hint_to_the_engine_that_has_no_effect_is_a_note(step: str, top: str, where: str) -> None:
    assert found(step, top)[where] is Severity.NOTE


@pytest.mark.parametrize("key", ["max_seconds", "max_bytes", "row_concurrency"])
def test_limits_by_which_rows_are_divided_are_noted_for_whole_frames(key: str) -> None:
    where = f"workflow[0].loop.spec.frame.{key}"
    whole = FRAME.replace("FRAME", f"{{{key}: 9, process: frame}}")
    assert found(f"{NOOP}, {whole}") == {where: Severity.NOTE}
    assert found(f"{NOOP}, {whole.replace('process: frame', 'process: row')}") == {}


def test_a_limit_of_a_frame_that_is_no_number_is_an_error() -> None:
    where = "workflow[0].loop.spec.frame.max_seconds"
    step = f"{NOOP}, {FRAME.replace('FRAME', '{max_seconds: soon}')}"
    assert found(step)[where] is Severity.ERROR
