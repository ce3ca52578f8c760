"""The credential of a sink that names none: its tasks', else the playbook's only one.

Never one in the place of another: where it is not clear which is meant, the author is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streams.playbook.auth import AUTH, AUTH_KEYS, default_credential
from streams.playbook.credentials import credential_name
from streams.playbook.draft import PlaybookDraft
from streams.playbook.errors import BadTemplate
from streams.playbook.expressions import compile_value
from streams.playbook.problem import Severity
from streams.playbook.sinks.check import driver_of, is_builtin, spec_of, storage_of
from streams.playbook.sinks.requirements import lacks
from streams.playbook.yaml_document import Path

_AFTERWARDS = frozenset({"workload", "ctx", "args", "execution_id", "path"})
"""Names that mean in a step what they meant in the one before it; those of steps do, too."""
_MACHINE = ("s3", "gcs", "bigquery")
"""Storages whose clients ask the machine for its identity where there is no credential."""
_KEYS = ("access_key", "access_key_id", "aws_access_key_id", "service_account_key")
"""Keys of `spec` that say who writes."""


def with_auth(
    draft: PlaybookDraft,
    block: Mapping[str, Any],
    tasks: Iterable[Mapping[str, Any]],
    path: Path,
    *,
    is_later: bool = False,
) -> Mapping[str, Any]:
    """Return a sink's block with the credential of the tasks it stands behind, if it names none.

    Only of those that speak to the same kind of database, and only where they agree. One that
    `is_later` is a step of its own and cannot read what its tasks' templates could.
    """
    if _says_where(block):
        return block
    found = {
        name
        for config in tasks
        for key in AUTH_KEYS
        if config.get("kind") in _kinds(block)
        and (name := credential_name(config.get(key))) is not None
    }
    if len(found) > 1:
        _ask(draft, path, f"the tasks before it use several: {', '.join(sorted(found))}")
    for name in found if len(found) == 1 else ():
        if not is_later or _is_readable_later(draft, name):
            return {**block, AUTH: name}
        _ask(draft, path, f"that of its tasks is made while they run: {name}")
    return block


def with_default_credential(draft: PlaybookDraft, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sink's block with the playbook's only credential, if it cannot do without one.

    Not for files of databases: the credential of a server would be taken for the name of one.
    """
    storage, driver = storage_of(block), driver_of(storage_of(block), block)
    is_file = storage == "duckdb" or driver == "ladybug"
    is_postgres = storage in ("postgres", "vector") and "dsn" not in spec_of(block)
    wants_one = is_postgres or (lacks(storage, driver, block) is not None and not is_file)
    only = default_credential(draft, block) if wants_one else None
    return block if only is None else {**block, AUTH: only}


def warn_machine_identity(
    draft: PlaybookDraft, storage: str, block: Mapping[str, Any], path: Path
) -> None:
    """Warn of a sink that goes by the machine's identity in a playbook that has a credential."""
    if storage not in _MACHINE or not is_builtin(storage, block) or len(draft.credentials) != 1:
        return
    nobody = ("endpoint",) if storage == "bigquery" else ()  # one of its own is asked unsigned
    given = {*AUTH_KEYS} & block.keys() or {*_KEYS, *nobody} & spec_of(block).keys()
    if given:
        return
    [only] = draft.credentials
    what = f"{storage} is written with the identity of the machine, not with {only!r}"
    draft.report(path, what, f"add auth: {only}, if that is meant", Severity.WARNING, at_key=True)


def _says_where(block: Mapping[str, Any]) -> bool:
    spec, is_file = spec_of(block), storage_of(block) == "duckdb"
    keys = ("dsn", "database", "path") if is_file else ("dsn",)
    return not block.keys().isdisjoint(AUTH_KEYS) or not spec.keys().isdisjoint(keys)


def _kinds(block: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the kinds of tasks that speak to the database of a sink."""
    storage = storage_of(block)
    is_pgvector = storage == "vector" and driver_of(storage, block) == "pgvector"
    return ("postgres", storage) if is_pgvector else (storage,)


def _is_readable_later(draft: PlaybookDraft, name: str) -> bool:
    try:
        return compile_value(name).names <= _AFTERWARDS.union(draft.steps)
    except BadTemplate:  # which is said where it stands
        return True


def _ask(draft: PlaybookDraft, path: Path, why: str) -> None:
    severity = Severity.ERROR if draft.clients else Severity.WARNING  # registered ones run on
    draft.report(path, f"which credential? {why}", "name one with `auth`", severity, at_key=True)
