"""Why a worker's tool, save or credential is refused.

Refused
├── SaveFailed           the database refuses a frame's rows
├── UnknownCredential    a task names a credential that is not there
│   └── CredentialRefused    or that it is not given
├── TooLargeAValue       a payload is too large to be handed to a task
├── UnknownTool          a task names a kind of tool that is not installed
└── BadConfig            a task's configuration cannot be used
Unavailable
└── TargetUnavailable    the database that a task writes to cannot be reached
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from streams.errors import Refused, Unavailable

VALUE_BYTES = 256 << 20
"""The largest payload that a task is handed as a value."""


class SaveFailed(Refused):
    """The database refuses the rows of a batch; nothing of it was written.

    `task` names the batch and `rows` are the indexes in it of the calls that are to blame, so
    that a caller can drop those and save the others. Empty: the batch as a whole is.
    """

    def __init__(self, task: str, why: str, *, rows: Sequence[int] = (), code: str = "") -> None:
        which = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows"
        named = f", {which} of the batch" if rows else ""
        super().__init__(f"save of {task!r}{named}: {why}; nothing was written")
        self.task, self.why, self.rows, self.code = task, why, tuple(rows), code


class UnknownCredential(Refused):
    """There is no credential of that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"credential {name!r}: there is none; {hint}store it with `streams credential set`, "
            "or add it to `credentials` in the settings or to the worker's environment as "
            f"NOETL_CREDENTIAL_{re.sub(r'[^A-Z0-9_]', '_', name.upper())}"
        )
        self.name = name


class CredentialRefused(UnknownCredential):
    """It may be there, but this task is not given it; the reason says what to do."""

    def __init__(self, name: str, why: str) -> None:
        Refused.__init__(self, f"credential {name!r}: {why}")
        self.name = name


class UnknownTool(Refused):
    """There is no tool of that kind."""

    def __init__(self, kind: str, known: Sequence[str]) -> None:
        close = get_close_matches(kind, known, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        super().__init__(
            f"tool {kind!r}: there is none; {hint}known here: {', '.join(sorted(known))}; "
            "more come as packages with an entry point in the group 'streams.tools'"
        )
        self.kind = kind


class BadConfig(Refused):
    """A task's configuration, rendered, is not what its tool can use."""


class TooLargeAValue(Refused):
    """A payload that is too large to be handed out as a value."""

    def __init__(self, uri: str, found: int, most: int) -> None:
        super().__init__(
            f"{uri} has {found} bytes, and at most {most} are handed to a task; pass its name on, "
            "and fetch it with GET /api/result/resolve where it is used"
        )


class TargetUnavailable(Unavailable):
    """A database that a task reads or writes cannot be reached."""
