"""Errors of a worker's tools, saves and credentials.

Refused
├── SaveFailed           the database refuses a frame's rows
├── UnknownCredential    a task names a credential that does not exist
│   └── CredentialRefused    or that it may not use
├── ValueTooLarge        a payload is too large to pass to a task
├── UnknownTool          a task names a kind of tool that is not installed
└── BadConfig            a task's configuration cannot be used
Unavailable
└── TaskUnavailable      what one task needs, and not the system, cannot be reached
    └── TargetUnavailable    such as the database that it writes to
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from streams.errors import Refused, Unavailable

VALUE_BYTES = 256 << 20
"""The largest payload passed to a task as a value."""


class SaveFailed(Refused):
    """The database rejects rows of a batch; nothing was written.

    `rows` are the indexes of the rejected calls in the batch `task`, so that a caller can drop
    those and save the others. Empty: the whole batch is rejected.
    """

    def __init__(self, task: str, why: str, *, rows: Sequence[int] = (), code: str = "") -> None:
        which = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows"
        named = f", {which} of the batch" if rows else ""
        super().__init__(f"save of {task!r}{named}: {why}; nothing was written")
        self.task, self.why, self.rows, self.code = task, why, tuple(rows), code


class UnknownCredential(Refused):
    """The credential does not exist."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"credential {name!r} does not exist; {hint}store it with `streams credential set`, "
            "or add it to `credentials` in the settings or to the worker's environment as "
            f"NOETL_CREDENTIAL_{re.sub(r'[^A-Z0-9_]', '_', name.upper())}"
        )
        self.name = name


class CredentialRefused(UnknownCredential):
    """This task may not use the credential; the reason says what to do."""

    def __init__(self, name: str, why: str) -> None:
        Refused.__init__(self, f"credential {name!r}: {why}")
        self.name = name


class UnknownTool(Refused):
    """The kind of tool does not exist."""

    def __init__(self, kind: str, known: Sequence[str]) -> None:
        close = get_close_matches(kind, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"tool {kind!r} does not exist; {hint}available: {', '.join(sorted(known))}; "
            "packages add tools through the entry point group 'streams.tools'"
        )
        self.kind = kind


class BadConfig(Refused):
    """A task's rendered configuration is not valid for its tool."""


class ValueTooLarge(Refused):
    """A payload is too large to pass as a value."""

    def __init__(self, uri: str, size: int, limit: int) -> None:
        super().__init__(
            f"{uri} has {size} bytes, and a task is passed at most {limit}; pass its name on, "
            "and fetch it with GET /api/result/resolve where it is used"
        )


class TaskUnavailable(Unavailable):
    """What one task needs is down. It may be named wrongly, so that it is not waited for long."""


class TargetUnavailable(TaskUnavailable):
    """A database that a task reads or writes cannot be reached."""

    dependency = "the target of a task"
