"""`sink:` blocks: each becomes an ordinary task that persists a result and gives a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streams.playbook.auth import AUTH, AUTH_KEYS, check_auth
from streams.playbook.deferred_saves import is_lone_insert
from streams.playbook.draft import PlaybookDraft
from streams.playbook.expressions import Constant, Template, compile_value, mapping
from streams.playbook.model import Rule, Sink, Task
from streams.playbook.problem import Severity
from streams.playbook.sinks.auth import warn_machine_identity, with_default_credential
from streams.playbook.sinks.check import (
    check_sink,
    driver_of,
    exactly_once_hint,
    mode_of,
    statement_of,
    storage_of,
)
from streams.playbook.sinks.rows import ReferenceTo, RowsToPostgres, VectorsToPostgres
from streams.playbook.sinks.storages import is_exact
from streams.playbook.yaml_document import Path

_RESULT = "{{ result }}"
_REST = ("batch", "chunk_size", "concurrency", "format")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPosition:
    """Where a sink stands."""

    of: str | None
    label: str
    is_per_row: bool = False
    subject: Template | None = None
    passes: bool = False


def sink_task(
    draft: PlaybookDraft,
    block: Mapping[str, Any],
    path: Path,
    place: SinkPosition,
    rules: tuple[Rule, ...],
) -> Task:
    """Return the task that a block stands for; what is wrong with it is reported."""
    storage, block = storage_of(block), with_default_credential(draft, block)
    warn_machine_identity(draft, storage, block, path)
    check_sink(draft, storage, block, path, is_per_row=place.is_per_row)
    address = _address(draft, block, path)
    kind, config = _config(draft, storage, block, path, address)
    when = block.get("when")
    mark = draft.document.keys.get(path) or draft.document.marks.get(path)
    exact = is_exact(storage, mode_of(storage, block), statement_of(block))
    if not exact:
        what = f"at least once: an attempt that comes again writes to {storage} again"
        draft.report(path, what, exactly_once_hint(storage), Severity.NOTE, at_key=True)
    return Task(
        label=place.label,
        kind=kind,
        config=config,
        rules=rules,
        deferrable=kind == "postgres" and _may_wait(storage, block, rules),
        sink=Sink(
            of=place.of,
            on=str(block.get("on", "success")),
            when=None if when is None else draft.condition((*path, "when"), when),
            subject=place.subject,
            passes=place.passes,
            address=address,
            is_exact=exact,
        ),
        line=mark.line if mark else 0,
    )


def _may_wait(storage: str, block: Mapping[str, Any], rules: tuple[Rule, ...]) -> bool:
    """Say whether a frame may gather these saves; the words of ours that insert may.

    What a row that fails leaves must not wait: the saves gathered for such a row are dropped.
    """
    if block.get("on", "success") != "success":
        return False
    statement = statement_of(block)
    if statement is None:
        inserts = mode_of(storage, block) in ("append", "upsert")
        statement = "insert" if inserts else ""
    return is_lone_insert("postgres", {"command": statement}, rules)


def _address(draft: PlaybookDraft, block: Mapping[str, Any], path: Path) -> Template:
    parts: dict[str, Template] = {}
    spec = block.get("spec") if isinstance(block.get("spec"), dict) else {}
    assert isinstance(spec, dict)
    for key in AUTH_KEYS:
        if key in block:
            check_auth(draft, (*path, key), key, block)
            parts.setdefault(AUTH, draft.template((*path, key), block[key]))
    if AUTH not in parts and "dsn" in spec:
        parts["dsn"] = draft.template((*path, "spec", "dsn"), spec["dsn"])
    return mapping(parts)


def _config(
    draft: PlaybookDraft, storage: str, block: Mapping[str, Any], path: Path, address: Template
) -> tuple[str, Template]:
    """Return the kind of the task, and what it is given."""
    statement, mode = statement_of(block), mode_of(storage, block)
    spec = block.get("spec") if isinstance(block.get("spec"), dict) else {}
    assert isinstance(spec, dict)
    given = draft.template((*path, "spec"), spec)
    if statement is not None:
        params = draft.template((*path, "params"), block.get("params") or {})
        if storage == "postgres":
            parts = {"command": Constant(statement), "params": params}
            if "timeout" in spec:
                parts["timeout"] = draft.template((*path, "spec", "timeout"), spec["timeout"])
            reference = {"store": "db", "key": "statement", "range": ""}
            return "postgres", ReferenceTo(_over(address, parts), reference)
        parts = {"statement": Constant(statement), "params": params}
    else:
        parts = _what(draft, block, path, spec)
    parts |= {"mode": Constant(mode), "spec": given, "key": Constant(_key(block))}
    if storage == "postgres":
        return "postgres", RowsToPostgres(mapping({**parts, "address": address}))
    driver = driver_of(storage, block)
    if storage == "vector" and driver == "pgvector":
        return "postgres", VectorsToPostgres(mapping({**parts, "address": address}))
    parts |= {"storage": Constant(storage), "driver": Constant(driver)}
    parts |= {name: Constant(block[name]) for name in _REST if name in block}
    return "sink", _over(address, parts)


def _what(
    draft: PlaybookDraft, block: Mapping[str, Any], path: Path, spec: Mapping[str, Any]
) -> dict[str, Template]:
    """Return what is persisted, and in which table."""
    named = next((key for key in ("data", "args") if key in block), None)
    data = compile_value(_RESULT)
    if named is not None:
        data = draft.template((*path, named), block[named])
    parts = {"data": data, "is_given": Constant(named is not None)}
    for where, holder in (((*path, "table"), block), ((*path, "spec", "table"), spec)):
        if "table" in holder and "table" not in parts:
            parts["table"] = draft.template(where, holder["table"])
    return parts


def _key(block: Mapping[str, Any]) -> list[Any]:
    key = block.get("key")
    if isinstance(key, str):
        return [key]
    return [str(one) for one in key] if isinstance(key, list) else []


def _over(address: Template, parts: Mapping[str, Template]) -> Template:
    return _Joined(address, mapping(parts))


class _Joined:
    """Two mappings as one."""

    def __init__(self, first: Template, second: Template) -> None:
        self._first, self._second = first, second
        self.names, self.key_paths = first.names | second.names, first.key_paths | second.key_paths

    def render(self, scope: Mapping[str, object]) -> Any:
        """Return what both render to."""
        first: Any = self._first.render(scope)
        second: Any = self._second.render(scope)
        return {**first, **second}
