"""Options of a block that its storage ignores."""

from __future__ import annotations

from collections.abc import Iterator

from streams.events.model import Json
from streams.playbook.auth import AUTH_KEYS
from streams.playbook.sinks.requirements import OptionProblem
from streams.playbook.sinks.sink_block import SinkBlock
from streams.playbook.yaml_document import Authored

_IN_PARTS = ("file", "s3", "gcs", "kv")
_USED_BY = {"chunk_size": _IN_PARTS, "batch": _IN_PARTS, "concurrency": _IN_PARTS[1:]}
_NO_TABLE = ("event_log", "file", "s3", "gcs", "kv")
_NO_LOGIN = ("event_log", "file")
_INSTEAD = {
    "event_log": "leave it out, or name a `storage`",
    "file": "leave it out; the name of the file is spec.path",
    "s3": "leave it out; the name of the object is spec.key",
    "gcs": "leave it out; the name of the object is spec.key",
    "kv": "leave it out; key and value are in `data`",
}
_ALONE = {"kv": ("url", "dsn"), "duckdb": ("database", "path")}
"""Keys of `spec` that replace a credential."""
_SAME = {
    "s3": (("key", "path", "prefix"),),
    "gcs": (("key", "path", "prefix"),),
    "duckdb": (("database", "path"),),
    "graph.ladybug": (("path", "database"),),
    "kv.redis": (("url", "dsn"),),
}
"""Synonymous keys of `spec`; the first one present counts."""


def without_effect(sink: SinkBlock) -> Iterator[OptionProblem]:
    """Yield options that have no effect and are harmless."""
    storage, mode, block = sink.storage, sink.mode, sink.written
    for key, storages in _USED_BY.items():
        if key in block and storage not in storages:
            hint = f"it is for {', '.join(storages)}: leave it out"
            how = "one part after the other" if storage in _IN_PARTS else "all rows together"
            yield (key,), f"{key!r} has no effect: {storage} writes {how}", hint
    for key in ("chunk_size", "batch"):
        if key in block and (storage, mode) == ("file", "append"):
            hint = "leave it out, or use mode overwrite"
            yield (key,), f"{key!r} has no effect: all rows are appended together", hint
    if "chunk_size" in block and block.get("batch") is False and storage in _IN_PARTS:
        yield ("chunk_size",), "'chunk_size' has no effect beside batch: false", "keep one"
    if storage in _NO_LOGIN:
        for key in AUTH_KEYS:
            if key in block:
                yield (key,), f"{key!r} has no effect: {storage} has no login", _INSTEAD[storage]


def ignored_by_builtin(sink: SinkBlock) -> Iterator[OptionProblem]:
    """Yield more options without effect; drivers of other packages may use them."""
    storage, mode, block, spec = sink.storage, sink.mode, sink.written, sink.spec
    is_declared = "statement" not in block
    for key in ("key", "table"):
        if key in block and storage in _NO_TABLE and is_declared:
            why = "does not identify rows by columns" if key == "key" else "has no tables"
            yield (key,), f"{key!r} has no effect: {storage} {why}", _INSTEAD[storage]
    if storage == "event_log" and (ignored := spec.keys() - {"timeout"}):
        what = f"'spec' has no effect: event_log has no option {min(ignored)!r}"
        yield ("spec",), what, _INSTEAD[storage]
    replaces = storage in _NO_TABLE or mode not in ("append", "overwrite")
    if "key" in block and is_declared and not replaces:
        hint = "leave it out, or use mode upsert"
        yield ("key",), f"mode {mode} replaces no rows by their 'key'", hint
    addresses = [key for key in _ALONE.get(storage, ()) if key in spec]
    for key in AUTH_KEYS if addresses else ():
        if key in block:
            yield (key,), f"{key!r} has no effect: 'spec' gives the {addresses[0]!r}", "keep one"
    if "table" in spec and not is_declared:
        what = "'table' has no meaning beside a statement"
        yield ("spec", "table"), what, "put it into the statement"
    if _tables_differ(sink) is False:
        yield ("spec", "table"), "'table' is given twice", "keep one"


def misleading(sink: SinkBlock) -> Iterator[OptionProblem]:
    """Yield ignored options whose neglect would write wrong data."""
    storage, block, spec = sink.storage, sink.written, sink.spec
    if _tables_differ(sink):
        what = f"{spec['table']!r} is not written to: `table` is {block['table']!r}"
        yield ("spec", "table"), what, "keep one"
    for names in _SAME.get(sink.full_name, ()):
        there = [name for name in names if name in spec]
        for name in there[1:]:
            what = f"{name!r} has no effect beside {there[0]!r}"
            yield ("spec", name), what, f"put all of it into {there[0]!r}"
    if storage in ("postgres", "vector") and "dsn" in spec and sink.has_credential:
        what = "'dsn' has no effect: the credential names the database"
        yield ("spec", "dsn"), what, "keep one"
    if storage == "vector" and sink.mode != "append" and "key" in block:
        yield from _vector_key_problems(spec, block["key"])


def _vector_key_problems(spec: Authored, key: Json) -> Iterator[OptionProblem]:
    own = str(spec.get("id_column") or "id")
    columns = [key] if isinstance(key, str) else key
    if columns and "{{" not in own and columns not in ([own], ["id"]):
        hint = "leave it out; a table with another key takes storage postgres"
        yield ("key",), f"a vector sink identifies rows by {own!r} alone", hint


def _tables_differ(sink: SinkBlock) -> bool | None:
    """Return whether two tables of a block differ; None: it does not name two."""
    block, spec = sink.written, sink.spec
    return block["table"] != spec["table"] if "table" in block and "table" in spec else None
