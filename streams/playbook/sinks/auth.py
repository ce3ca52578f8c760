"""Default credential of a sink: that of its tasks, else the playbook's only one.

If it is ambiguous, the author has to name it.
"""

from __future__ import annotations

from collections.abc import Iterable

from streams.playbook.auth import AUTH, AUTH_KEYS, default_credential
from streams.playbook.credentials import credential_name
from streams.playbook.draft import PlaybookDraft
from streams.playbook.errors import BadTemplate
from streams.playbook.expressions import compile_value
from streams.playbook.problem import Severity
from streams.playbook.sinks.requirements import lacks
from streams.playbook.sinks.sink_block import SinkBlock
from streams.playbook.yaml_document import Authored, Path

_AFTERWARDS = frozenset({"workload", "ctx", "args", "execution_id", "path"})
"""Names with the same meaning in consecutive steps, besides the steps' own."""
_MACHINE = ("s3", "gcs", "bigquery")
"""Storages whose clients use the machine's identity if there is no credential."""
_KEYS = ("access_key", "access_key_id", "aws_access_key_id", "service_account_key")
"""Keys of `spec` that hold a login."""


def with_auth(
    draft: PlaybookDraft,
    block: Authored,
    tasks: Iterable[Authored],
    path: Path,
    *,
    is_later: bool = False,
) -> Authored:
    """Return a sink's block with the credential of the tasks before it, if it has none.

    Only of tasks with the same kind of database, and only if they agree. One that `is_later` is
    a separate step and cannot read what its tasks' templates can.
    """
    sink = SinkBlock.read(block)
    if _has_address(sink):
        return block
    kinds = _task_kinds(sink)
    found = {
        name
        for config in tasks
        for key in AUTH_KEYS
        if config.get("kind") in kinds and (name := credential_name(config.get(key))) is not None
    }
    if len(found) > 1:
        several = ", ".join(sorted(found))
        _report_ambiguous(draft, path, f"the tasks before it use several: {several}")
    for name in found if len(found) == 1 else ():
        if not is_later or _is_readable_later(draft, name):
            return {**block, AUTH: name}
        _report_ambiguous(draft, path, f"that of its tasks is made while they run: {name}")
    return block


def with_default_credential(draft: PlaybookDraft, block: Authored) -> Authored:
    """Return a sink's block with the playbook's only credential, if it needs one.

    Not for database files: the credential of a server would be taken for a file name.
    """
    sink = SinkBlock.read(block)
    is_file = sink.storage == "duckdb" or sink.driver == "ladybug"
    is_postgres = sink.storage in ("postgres", "vector") and "dsn" not in sink.spec
    wants_one = is_postgres or (lacks(sink) is not None and not is_file)
    only = default_credential(draft, block) if wants_one else None
    return block if only is None else {**block, AUTH: only}


def warn_machine_identity(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> None:
    """Warn of a sink that uses the machine's identity although there is a credential."""
    if sink.storage not in _MACHINE or not sink.is_builtin or len(draft.credentials) != 1:
        return
    unsigned = ("endpoint",) if sink.storage == "bigquery" else ()  # its own takes no login
    if sink.has_credential or {*_KEYS, *unsigned} & sink.spec.keys():
        return
    [only] = draft.credentials
    what = f"{sink.storage} is written with the identity of the machine, not with {only!r}"
    draft.report(path, what, f"add auth: {only}, if that is meant", Severity.WARNING, at_key=True)


def _has_address(sink: SinkBlock) -> bool:
    keys = ("dsn", "database", "path") if sink.storage == "duckdb" else ("dsn",)
    return sink.has_credential or not sink.spec.keys().isdisjoint(keys)


def _task_kinds(sink: SinkBlock) -> tuple[str, ...]:
    """Return the kinds of tasks that use the database of a sink."""
    return ("postgres", sink.storage) if sink.full_name == "vector.pgvector" else (sink.storage,)


def _is_readable_later(draft: PlaybookDraft, name: str) -> bool:
    try:
        return compile_value(name).names <= _AFTERWARDS.union(draft.steps)
    except BadTemplate:  # reported at its own place
        return True


def _report_ambiguous(draft: PlaybookDraft, path: Path, why: str) -> None:
    what, hint = f"which credential? {why}", "name one with `auth`"
    draft.report(path, what, hint, draft.new_error, at_key=True)
