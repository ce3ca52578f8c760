"""Compiler of `keychain`: named secrets that templates read as `keychain.<name>.<field>`."""

from __future__ import annotations

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import KeychainEntry
from streams.playbook.noetl.inert_keys import report_inert_entry
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.yaml_document import as_list

KINDS = ("static", "bearer", "credential", "oauth2", "secrets")
PROVIDERS = ("aws", "env", "file")
_ASIDE = ("name", "kind", "scope", "auto_renew")


def keychain_of(draft: PlaybookDraft, value: Json) -> tuple[KeychainEntry, ...]:
    """Return the entries, in order; one that cannot be filled is reported and stays empty."""
    made: list[KeychainEntry] = []
    for place, entry in enumerate(as_list(value)):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        path, kind = ("keychain", place), str(entry.get("kind", "static"))
        if kind not in KINDS:
            hint = nearest(kind, KINDS) or f"there are {', '.join(KINDS)}"
            what = f"nothing fills an entry of kind {kind!r}; its fields are empty"
            draft.report((*path, "kind"), what, hint, Severity.WARNING)
            continue
        if kind == "secrets" and entry.get("provider") not in PROVIDERS:
            hint = f"there are {', '.join(PROVIDERS)}; see docs/credentials.md"
            what = f"there is no provider {entry.get('provider')!r}; its fields are empty"
            draft.report((*path, "provider"), what, hint, Severity.WARNING)
            continue
        report_inert_entry(draft, entry, kind, path)
        config = {key: item for key, item in entry.items() if key not in _ASIDE}
        template = draft.template(path, config)
        made.append(KeychainEntry(name=str(entry["name"]), kind=kind, config=template))
    return tuple(made)
