"""A container task needs a cluster and an image: `check` reports it."""

from __future__ import annotations

from typing import Any

import pytest

from streams.playbook.parse import check
from streams.playbook.problem import Severity

SPEC = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{path: p/q}}\n"
SPEC += "workflow:\n  - {{step: start, tool: {{{}}}}}\n"
NOETL = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: q, path: p/q}}\n"
NOETL += "workflow:\n  - {{step: start, tool: [{{name: a, {}}}]}}\n"


@pytest.mark.parametrize("text", [SPEC, NOETL])
def test_a_task_that_names_no_cluster_is_noted(text: str) -> None:
    made, (problem,) = check(text.format("kind: container, image: alpine"))
    assert made is not None
    assert problem.severity is Severity.NOTE
    assert "tools.kubernetes.kubeconfig" in str(problem)
    _, problems = check(text.format("kind: container, image: alpine, auth: k8s"))
    assert not problems


@pytest.mark.parametrize("text", [SPEC, NOETL])
def test_a_task_without_an_image_is_refused(text: str) -> None:
    made, problems = check(text.format("kind: container, auth: k8s, command: [ls]"))
    assert made is None
    assert ["needs `image`" in str(problem) for problem in problems] == [True]


@pytest.mark.parametrize("text", [SPEC, NOETL])
def test_args_of_a_container_are_those_of_its_command(text: str) -> None:
    made, _ = check(text.format("kind: container, image: alpine, auth: k8s, args: [-c, ls]"))
    assert made is not None
    config: Any = made.steps["start"].tasks[0].config.render({})
    assert config["args"] == ["-c", "ls"]
