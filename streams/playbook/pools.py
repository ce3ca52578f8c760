"""Pools that steps name: their names, and a note that they need workers."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.yaml_document import Path
from streams.segments import is_pool_name

DEFAULT = "default"
_RESERVED = "planner"


def check_pool(draft: PlaybookDraft, path: Path, pool: Json) -> None:
    """Report a pool whose work no worker would read, and note one that needs its own workers."""
    if not isinstance(pool, str) or pool in ("", DEFAULT):
        return
    if not is_pool_name(pool):
        hint = "it is part of a topic's name: letters, digits, `.`, `_` and `-`"
        draft.report(path, f"{pool!r} is not a valid name of a pool", hint, draft.new_error)
    elif pool == _RESERVED:
        what = "the pool 'planner' is the planner's own: no worker reads it"
        draft.report(path, what, "name another pool", draft.new_error)
    else:
        what = f"only workers of the pool {pool!r} run this"
        hint = f"start one: `streams run worker --pool {pool}`, or `streams up --workers {pool}=1`"
        draft.report(path, what, hint, Severity.NOTE)
