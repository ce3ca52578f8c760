"""Keys of the document and its keychain that have no effect: each is reported by its name."""

from __future__ import annotations

from collections.abc import Mapping

from streams.playbook.draft import PlaybookDraft
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.yaml_document import Authored, Path, as_mapping

_DOCUMENT = ("spec", "tracing")
_ENTRY: Mapping[str, tuple[str, ...]] = {
    "static": ("map",),
    "bearer": ("token",),
    "credential": ("auth", "credential"),
    "oauth2": ("endpoint", "method", "headers", "data", "params", "auth"),
    "secrets": ("provider", "map"),
}
"""Keys that fill an entry of the keychain, by its kind."""
_HINTS: Mapping[str, str] = {
    "scope": "entries are filled for each task, and belong to it",
    "auto_renew": "entries are filled for each task",
    "auth": "the deployment has the login of a provider; see docs/credentials.md",
}


def report_inert_document(draft: PlaybookDraft, top: Authored) -> None:
    """Report keys of the document that no engine reads."""
    for key in _DOCUMENT:
        if key in top:
            _note(draft, (key,), key)
    executor = as_mapping(top.get("executor"))
    for key in executor:
        if key != "spec":
            _note(draft, ("executor", key), key)
    for key in as_mapping(executor.get("spec")):
        if key != "entry_step":
            _note(draft, ("executor", "spec", key), key)


def report_inert_entry(draft: PlaybookDraft, entry: Authored, kind: str, path: Path) -> None:
    """Report keys of a keychain's entry that do not fill it."""
    known = _ENTRY[kind]
    for key in entry:
        if key in (*known, "name", "kind"):
            continue
        if (why := _HINTS.get(key)) is not None:
            _note(draft, (*path, key), key, why)
        else:
            hint = nearest(key, known) or f"it reads {', '.join(known)}"
            what = f"{key!r} has no effect in an entry of kind {kind}"
            draft.report((*path, key), what, hint, Severity.WARNING, at_key=True)


def _note(draft: PlaybookDraft, path: Path, key: str, hint: str | None = None) -> None:
    draft.report(path, f"{key!r} has no effect", hint, Severity.NOTE, at_key=True)
