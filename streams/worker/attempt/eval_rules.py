"""Matching of `eval` rules, and retry delays."""

from __future__ import annotations

from collections.abc import Mapping

from streams.playbook.model import Do, Rule, Task

MAX_DELAY_S = 60.0


def matching(task: Task, scope: Mapping[str, object]) -> Rule | None:
    """Return the first rule that matches in `scope`; None: the default applies.

    Raises:
        Refused: a rule's expression cannot be rendered.
    """
    for rule in task.rules:
        if rule.when is None or rule.when.render(scope):
            return rule
    return None


def usual(status: str) -> Do:
    """Return the default action for an outcome that no rule matches."""
    return Do.CONTINUE if status == "success" else Do.FAIL


def delay(rule: Rule, tries: int) -> float:
    """Return the seconds to wait after `tries` tries, without jitter so that runs repeat."""
    if rule.backoff == "none":
        return 0.0
    if rule.backoff == "exponential":
        return min(MAX_DELAY_S, rule.delay_s * 2.0 ** min(tries - 1, 32))
    if rule.backoff == "linear":
        return min(MAX_DELAY_S, rule.delay_s * tries)
    return min(MAX_DELAY_S, rule.delay_s)
