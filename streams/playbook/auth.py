"""Checks of a task's credential: `auth` under all its names."""

from __future__ import annotations

from streams.playbook.credentials import credential_name
from streams.playbook.draft import PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.yaml_document import Authored, Path

AUTH = "auth"
AUTH_KEYS = (AUTH, "credential", "credentialRef")
"""The key that tools read, and its aliases."""


def check_auth(draft: PlaybookDraft, path: Path, key: str, config: Authored) -> None:
    """Report a credential that is given twice, and note one that is not declared."""
    given = [one for one in AUTH_KEYS if one in config]
    if len(given) > 1 and key != given[0]:
        what = f"the credential is given twice, as {' and '.join(given)}"
        draft.report(path, what, f"keep {given[0]!r}", at_key=True)
    name = credential_name(config[key])
    declared = {*draft.credentials, *draft.credentials.values()}
    if not declared or name is None or "{{" in name or name in declared:
        return
    hint = nearest(name, sorted(declared)) or "declare it there, or leave it to the store"
    what = f"credential {name!r} is not among the playbook's `credentials`"
    draft.report(path, what, hint, Severity.NOTE)


def default_credential(draft: PlaybookDraft, config: Authored) -> str | None:
    """Return the playbook's only credential, for a task that needs one and names none."""
    if any(key in config for key in (*AUTH_KEYS, "dsn")) or len(draft.credentials) != 1:
        return None
    return next(iter(draft.credentials))
