"""Compiler of `sink:` blocks to tasks that persist a result and return a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams.events.model import Json
from streams.playbook.auth import AUTH, AUTH_KEYS, check_auth
from streams.playbook.deferred_saves import is_lone_insert
from streams.playbook.draft import PlaybookDraft
from streams.playbook.expressions import compile_value
from streams.playbook.model import Rule, Sink, Task
from streams.playbook.problem import Severity
from streams.playbook.sinks.auth import warn_machine_identity, with_default_credential
from streams.playbook.sinks.check import check_sink
from streams.playbook.sinks.rows import ReferenceTo, RowsToPostgres, VectorsToPostgres, rendered
from streams.playbook.sinks.sink_block import SinkBlock
from streams.playbook.sinks.storages import exactly_once_hint, is_exact
from streams.playbook.template import Constant, Template, mapping
from streams.playbook.yaml_document import Authored, Path

_RESULT = "{{ result }}"
_REST = ("batch", "chunk_size", "concurrency", "format")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPosition:
    """Which task or step a sink follows, and how it is labelled."""

    of: str | None
    label: str
    is_per_row: bool = False
    subject: Template | None = None
    passes: bool = False


def sink_task(
    draft: PlaybookDraft,
    block: Authored,
    path: Path,
    position: SinkPosition,
    rules: tuple[Rule, ...],
) -> Task:
    """Return the task that a block is compiled to; its problems are reported."""
    sink = SinkBlock.read(with_default_credential(draft, block))
    warn_machine_identity(draft, sink, path)
    check_sink(draft, sink, path, is_per_row=position.is_per_row)
    address = _address(draft, sink, path)
    kind, config = _config(draft, sink, path, address)
    when = sink.written.get("when")
    exact = is_exact(sink.storage, sink.mode, sink.statement)
    if not exact:
        what = f"at least once: an attempt that is repeated writes to {sink.storage} again"
        draft.report(path, what, exactly_once_hint(sink.storage), Severity.NOTE, at_key=True)
    return Task(
        label=position.label,
        kind=kind,
        config=config,
        rules=rules,
        deferrable=kind == "postgres" and _is_deferrable(sink, rules),
        sink=Sink(
            of=position.of,
            on=str(sink.written.get("on", "success")),
            when=None if when is None else draft.condition((*path, "when"), when),
            subject=position.subject,
            passes=position.passes,
            address=address,
            is_exact=exact,
        ),
        line=draft.document.line(path),
    )


def _is_deferrable(sink: SinkBlock, rules: tuple[Rule, ...]) -> bool:
    """Return whether a frame may defer these saves: those that only insert.

    A save for a failed row must not be deferred: deferred saves of such a row are dropped.
    """
    if sink.written.get("on", "success") != "success":
        return False
    statement = sink.statement
    if statement is None:
        statement = "insert" if sink.mode in ("append", "upsert") else ""
    return is_lone_insert("postgres", {"command": statement}, rules)


def _address(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> Template:
    """Return the template that names the database: `auth` or `dsn`."""
    parts: dict[str, Template] = {}
    for key in AUTH_KEYS:
        if key in sink.written:
            check_auth(draft, (*path, key), key, sink.written)
            parts.setdefault(AUTH, draft.template((*path, key), sink.written[key]))
    if AUTH not in parts and "dsn" in sink.spec:
        parts["dsn"] = draft.template((*path, "spec", "dsn"), sink.spec["dsn"])
    return mapping(parts)


def _config(
    draft: PlaybookDraft, sink: SinkBlock, path: Path, address: Template
) -> tuple[str, Template]:
    """Return the kind of the task, and its configuration."""
    spec, given = sink.spec, draft.template((*path, "spec"), dict(sink.spec))
    if sink.statement is not None:
        params = draft.template((*path, "params"), sink.written.get("params") or {})
        if sink.storage == "postgres":
            parts = {"command": Constant(sink.statement), "params": params}
            if "timeout" in spec:
                parts["timeout"] = draft.template((*path, "spec", "timeout"), spec["timeout"])
            reference: dict[str, Json] = {"store": "db", "key": "statement", "range": ""}
            return "postgres", ReferenceTo(_Joined(address, mapping(parts)), reference)
        parts = {"statement": Constant(sink.statement), "params": params}
    else:
        parts = _data(draft, sink, path)
    parts["spec"] = given
    if sink.storage == "postgres":
        return "postgres", RowsToPostgres(
            mapping({**parts, "address": address}), sink.mode, _key(sink)
        )
    if sink.full_name == "vector.pgvector":
        return "postgres", VectorsToPostgres(mapping({**parts, "address": address}), sink.mode)
    parts |= {"mode": Constant(sink.mode), "key": Constant([*_key(sink)])}
    parts |= {"storage": Constant(sink.storage), "driver": Constant(sink.driver)}
    parts |= {name: Constant(sink.written[name]) for name in _REST if name in sink.written}
    return "sink", _Joined(address, mapping(parts))


def _data(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> dict[str, Template]:
    """Return the data and the table."""
    named = next((key for key in ("data", "args") if key in sink.written), None)
    data = compile_value(_RESULT)
    if named is not None:
        data = draft.template((*path, named), sink.written[named])
    parts = {"data": data, "is_given": Constant(named is not None)}
    for where, holder in (((*path, "table"), sink.written), ((*path, "spec", "table"), sink.spec)):
        if "table" in holder and "table" not in parts:
            parts["table"] = draft.template(where, holder["table"])
    return parts


def _key(sink: SinkBlock) -> list[str]:
    key = sink.written.get("key")
    if isinstance(key, str):
        return [key]
    return [str(one) for one in key] if isinstance(key, list) else []


class _Joined:
    """Two mappings as one."""

    def __init__(self, first: Template, second: Template) -> None:
        self._first, self._second = first, second
        self.names, self.key_paths = first.names | second.names, first.key_paths | second.key_paths

    def render(self, scope: Mapping[str, object]) -> Json:
        """Return the keys of both; those of the second win."""
        return {**rendered(self._first, scope), **rendered(self._second, scope)}
