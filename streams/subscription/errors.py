"""Errors of subscriptions.

Refused
└── BadSubscription   a document has errors; it carries every problem found
"""

from __future__ import annotations

from collections.abc import Sequence

from streams.errors import Refused
from streams.playbook.problem import Problem, Severity


class BadSubscription(Refused):
    """A subscription has errors; `problems` are all problems, including notes."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        lines = "\n".join(f"  {problem}" for problem in errors)
        noun = "error" if len(errors) == 1 else "errors"
        super().__init__(f"{name}: {len(errors)} {noun}; correct them and try again\n{lines}")
        self.problems = tuple(problems)
