"""The credential of a task: `auth` under all its names, and what is worth saying about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.playbook.credentials import name_in
from streams.playbook.draft import Draft
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.source import Path

AUTH = "auth"
AUTH_KEYS = (AUTH, "credential", "credentialRef")
"""The key that tools read, and what authors may call it."""


def look_at_auth(draft: Draft, path: Path, key: str, config: Mapping[str, Any]) -> None:
    """Report a credential that is said twice, and note one that the playbook does not declare."""
    said = [one for one in AUTH_KEYS if one in config]
    if len(said) > 1 and key != said[0]:
        what = f"the credential is said twice, as {' and '.join(said)}"
        draft.report(path, what, f"keep {said[0]!r}", at_key=True)
    name = name_in(config[key])
    declared = {*draft.credentials, *draft.credentials.values()}
    if not declared or name is None or "{{" in name or name in declared:
        return
    hint = nearest(name, sorted(declared)) or "declare it there, or leave it to the store"
    what = f"credential {name!r} is not among the playbook's `credentials`"
    draft.report(path, what, hint, Severity.NOTE)


def usual_credential(draft: Draft, config: Mapping[str, Any]) -> str | None:
    """Return the playbook's only credential, for a task that needs one and names none."""
    if any(key in config for key in (*AUTH_KEYS, "dsn")) or len(draft.credentials) != 1:
        return None
    return next(iter(draft.credentials))
