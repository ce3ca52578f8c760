"""Errors of playbooks.

Refused
├── BadTemplate        a text is not a valid template
├── ExpressionFailed   a template cannot be rendered in this scope, or exceeds a limit
├── BadSink            data of a sink does not have the form its storage needs
└── BadPlaybook        a playbook has errors; it carries every problem found
"""

from __future__ import annotations

from collections.abc import Sequence

from streams.errors import Refused
from streams.playbook.problem import Problem, Severity

_SHOWN = 200


class BadTemplate(Refused):
    """A template cannot be compiled."""

    def __init__(self, text: str, why: str, *, line: int = 1) -> None:
        super().__init__(f"{shorten(text)}: {why}")
        self.text, self.why, self.line = text, why, line


class ExpressionFailed(Refused):
    """A template cannot be rendered, took too long or grew too large."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"{shorten(text)}: {why}")
        self.text, self.why = text, why


class BadSink(Refused):
    """Rendered data of a sink does not have the form its storage needs."""


class BadPlaybook(Refused):
    """A playbook has errors; `problems` are all problems, including notes."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        errors = [problem for problem in problems if problem.severity is Severity.ERROR]
        lines = "\n".join(f"  {problem}" for problem in errors)
        noun = "error" if len(errors) == 1 else "errors"
        super().__init__(f"{name}: {len(errors)} {noun}; correct them and try again\n{lines}")
        self.problems = tuple(problems)


def shorten(text: str) -> str:
    """Return a template's text on one line, truncated."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
