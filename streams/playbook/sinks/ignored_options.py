"""What a block says and its storage does not heed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.sinks.requirements import OptionProblem

_IN_PARTS = ("file", "s3", "gcs", "kv")
_HEEDS = {"chunk_size": _IN_PARTS, "batch": _IN_PARTS, "concurrency": _IN_PARTS[1:]}
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
"""Keys of `spec` that say all that a credential could."""
_SAME = {
    "s3": (("key", "path", "prefix"),),
    "gcs": (("key", "path", "prefix"),),
    "duckdb": (("database", "path"),),
    "graph.ladybug": (("path", "database"),),
    "kv.redis": (("url", "dsn"),),
}
"""Keys of `spec` that say the same; the first that is there counts."""


def without_effect(storage: str, mode: str, block: Mapping[str, Any]) -> Iterator[OptionProblem]:
    """Name what does nothing, and no harm either."""
    for key, heeding in _HEEDS.items():
        if key in block and storage not in heeding:
            hint = f"it is for {', '.join(heeding)}: leave it out"
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


def ignored_by_builtin(
    storage: str, mode: str, block: Mapping[str, Any]
) -> Iterator[OptionProblem]:
    """Name more that does nothing; drivers of other packages may heed it."""
    spec, is_declared = _spec(block), "statement" not in block
    for key in ("key", "table"):
        if key in block and storage in _NO_TABLE and is_declared:
            why = "tells no rows apart by columns" if key == "key" else "has no tables"
            yield (key,), f"{key!r} has no effect: {storage} {why}", _INSTEAD[storage]
    if storage == "event_log" and (ignored := spec.keys() - {"timeout"}):
        what = f"'spec' has no effect: event_log needs to know no {min(ignored)!r}"
        yield ("spec",), what, _INSTEAD[storage]
    replaces = storage in _NO_TABLE or mode not in ("append", "overwrite")
    if "key" in block and is_declared and not replaces:
        hint = "leave it out, or use mode upsert"
        yield ("key",), f"mode {mode} replaces no rows by their 'key'", hint
    told = [key for key in _ALONE.get(storage, ()) if key in spec]
    for key in AUTH_KEYS if told else ():
        if key in block:
            yield (key,), f"{key!r} has no effect: 'spec' says the {told[0]!r}", "keep one"
    if "table" in spec and not is_declared:
        what = "'table' means nothing beside a statement"
        yield ("spec", "table"), what, "say it in the statement"
    if _tables_differ(block) is False:
        yield ("spec", "table"), "'table' is there twice", "keep one"


def misleading(
    storage: str, driver: str, mode: str, block: Mapping[str, Any]
) -> Iterator[OptionProblem]:
    """Name what does nothing where the author must think that it does: data would be wrong."""
    spec = _spec(block)
    if _tables_differ(block):
        what = f"{spec['table']!r} is not written to: `table` says {block['table']!r}"
        yield ("spec", "table"), what, "keep one"
    for names in _SAME.get(f"{storage}.{driver}" if driver else storage, ()):
        there = [name for name in names if name in spec]
        for name in there[1:]:
            what = f"{name!r} has no effect beside {there[0]!r}"
            yield ("spec", name), what, f"say all of it in {there[0]!r}"
    is_named = not block.keys().isdisjoint(AUTH_KEYS)
    if storage in ("postgres", "vector") and "dsn" in spec and is_named:
        what = "'dsn' has no effect: the credential says which database it is"
        yield ("spec", "dsn"), what, "keep one"
    if storage == "vector" and mode != "append" and "key" in block:
        yield from _of_vector(spec, block["key"])


def _of_vector(spec: Mapping[str, Any], key: Any) -> Iterator[OptionProblem]:
    own = str(spec.get("id_column") or "id")
    columns = [key] if isinstance(key, str) else key
    if columns and "{{" not in own and columns not in ([own], ["id"]):
        hint = "leave it out; a table with another key takes storage postgres"
        yield ("key",), f"a vector sink tells rows apart by {own!r} alone", hint


def _tables_differ(block: Mapping[str, Any]) -> bool | None:
    """Say whether a block names two tables; None: it does not name two."""
    spec = _spec(block)
    return block["table"] != spec["table"] if "table" in block and "table" in spec else None


def _spec(block: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = block.get("spec")
    return spec if isinstance(spec, dict) else {}
