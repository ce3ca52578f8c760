"""Errors of trial runs.

Refused
├── BadTrial           the command's input cannot be used; exit code 2
│   └── BadTestFile    a `*.test.yaml` is not valid
├── PathNotFound       a playbook calls a path that no given file has
└── TrialTimeout       the execution did not end in time
"""

from __future__ import annotations

from collections.abc import Sequence

from streams.errors import Refused


class BadTrial(Refused):
    """The input of a trial run cannot be used."""

    exit_code = 2


class BadTestFile(BadTrial):
    """A file of test cases is not valid; every problem is listed."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{name}: not a valid test file\n{lines}")
        self.problems = tuple(problems)


class PathNotFound(Refused):
    """No file has the playbook of this path."""

    def __init__(self, path: str, folder: str) -> None:
        super().__init__(
            f"playbook {path!r} is not in {folder} nor in a file given by --with; "
            "add `--with FILE`, or answer for the step with --mock"
        )


class TrialTimeout(Refused):
    """The execution did not end in time."""

    exit_code = 1

    def __init__(self, seconds: float, last: str) -> None:
        super().__init__(
            f"the execution did not end within {seconds:g} s; its last event is {last}; "
            "give it more time with --timeout"
        )
