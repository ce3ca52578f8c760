"""What can be said about a `sink:` block before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streams.playbook.auth import AUTH_KEYS
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Do
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.sinks.ignored_options import ignored_by_builtin, misleading, without_effect
from streams.playbook.sinks.requirements import needs
from streams.playbook.sinks.storages import (
    DIALECTS,
    MODES,
    STORAGES,
    Storage,
    missing,
    plugged,
    usual_driver,
)
from streams.playbook.yaml_document import Path

_SQL_QUOTED = re.compile(
    r"--[^\n]*|/\*.*?\*/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    r"|\$(\w*)\$.*?\$\1\$|::|:=",
    re.S,
)
_CYPHER_QUOTED = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.S
)
_SQL_NAME = re.compile(r":([A-Za-z_]\w*)")
_CYPHER_NAME = re.compile(r"\$([A-Za-z_]\w*)")
_NAMED = {"file": ("path",), "s3": ("key", "path"), "gcs": ("key", "path")}
"""Keys of `spec` that say what is written to; the first that is there counts."""
_ONE_OF = (("storage", "tool"), ("data", "args"))


def storage_of(block: Mapping[str, Any]) -> str:
    """Return the storage that a block names; the log where it names none that is known."""
    named = block.get("storage") or block.get("tool") or "event_log"
    return named if isinstance(named, str) and named in STORAGES else "event_log"


def spec_of(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a block tells its storage."""
    spec = block.get("spec")
    return spec if isinstance(spec, dict) else {}


def mode_of(storage: str, block: Mapping[str, Any]) -> str:
    """Return the mode a block says, or the storage's usual one."""
    modes = STORAGES[storage].modes
    return str(block.get("mode") or (modes[0] if modes else ""))


def statement_of(block: Mapping[str, Any]) -> str | None:
    """Return the statement of a block; None: it is declarative."""
    statement = block.get("statement")
    return statement if isinstance(statement, str) else None


def driver_of(storage: str, block: Mapping[str, Any]) -> str:
    """Return the driver a block says, or the usual one for its storage and dialect."""
    spec = spec_of(block)
    return str(spec.get("driver") or usual_driver(storage, str(spec.get("dialect") or "")))


def is_builtin(storage: str, block: Mapping[str, Any]) -> bool:
    """Say whether we know what its driver understands: those of other packages may differ."""
    driver = driver_of(storage, block)
    return not driver or driver in STORAGES[storage].drivers


def exactly_once_hint(storage: str) -> str:
    """Say what leaves the same however often it is written."""
    known = STORAGES[storage]
    if not known.modes:
        return "write MERGE instead of CREATE, where that matters"
    same = " or ".join(mode for mode in known.modes if mode not in known.repeats)
    return f"mode {same} leaves the same; postgres and duckdb append once"


def check_sink(
    draft: PlaybookDraft, storage: str, block: Mapping[str, Any], path: Path, *, is_per_row: bool
) -> None:
    """Report all that is wrong with a block of this storage."""
    known = STORAGES[storage]
    for where, message, hint in (
        *_problems(storage, known, block, is_per_row),
        *needs(storage, driver_of(storage, block), block),
    ):
        draft.report((*path, *where), message, hint, at_key=True)
    _check_effect(draft, storage, block, path)
    _check_dialect(draft, storage, known, block, path)
    _check_names(draft, storage, known, block, path)
    statement = statement_of(block)
    if statement is not None and known.dialects and is_builtin(storage, block):
        _check_parameters(draft, known, statement, block, path)
    if is_per_row and storage in _NAMED and mode_of(storage, block) == "overwrite":
        _check_place(draft, storage, block, path)
    if "credentialRef" in block:
        what = "'credentialRef' is deprecated"
        draft.report((*path, "credentialRef"), what, "write `auth`", Severity.NOTE, at_key=True)


def _check_effect(draft: PlaybookDraft, storage: str, block: Mapping[str, Any], path: Path) -> None:
    """Warn of what is not heeded, and refuse it where data would not be as it was meant."""
    mode = mode_of(storage, block)
    harmless = [*without_effect(storage, mode, block)]
    if is_builtin(storage, block):
        harmless += ignored_by_builtin(storage, mode, block)
        severity = Severity.ERROR if draft.clients else Severity.WARNING  # registered ones run on
        for where, what, hint in misleading(storage, driver_of(storage, block), mode, block):
            draft.report((*path, *where), what, hint, severity, at_key=True)
    for where, what, hint in harmless:
        draft.report((*path, *where), what, hint, Severity.WARNING, at_key=True)


def _check_dialect(
    draft: PlaybookDraft, storage: str, known: Storage, block: Mapping[str, Any], path: Path
) -> None:
    """Report a language that the driver does not speak; one of another package may."""
    dialect, driver = spec_of(block).get("dialect"), str(spec_of(block).get("driver"))
    if dialect is None or not known.dialects or f"{storage}.{driver}" in plugged():
        return
    severity = Severity.ERROR if draft.clients else Severity.WARNING  # registered ones run on
    at = (*path, "spec", "dialect")
    if dialect not in DIALECTS:
        hint = nearest(str(dialect), DIALECTS) or f"there are {', '.join(DIALECTS)}"
        draft.report(at, f"there is no dialect {dialect!r}", hint, severity, at_key=True)
    elif dialect not in known.dialects and driver in known.drivers:  # else it names the driver
        what = f"{driver} speaks {' and '.join(known.dialects)}, not {dialect}"
        hint = f"a package can bring a driver for it: {storage}.{dialect}"
        draft.report(at, what, hint, severity, at_key=True)


def check_rules(draft: PlaybookDraft, rules: Any, path: Path) -> None:
    """Report rules that a sink cannot follow: it has nowhere to go to."""
    for place, rule in enumerate(rules if isinstance(rules, list) else ()):
        if not isinstance(rule, dict):
            continue
        inner = rule.get("else")
        verdict = {**rule, **(inner if isinstance(inner, dict) else {})}
        if verdict.get("do") in (Do.JUMP, Do.BREAK):
            hint = "a sink can retry, continue or fail"
            draft.report((*path, place), f"a sink cannot {verdict['do']}", hint)
        for key in ("set_iter", "set_vars", "set_ctx"):
            if key in verdict:
                draft.report((*path, place), f"a sink sets nothing: {key!r}")


def _problems(
    storage: str, known: Storage, block: Mapping[str, Any], is_per_row: bool
) -> Iterator[tuple[Path, str, str | None]]:
    for names in _ONE_OF:
        there = [name for name in names if name in block]
        if len(there) > 1:
            yield (there[1],), f"{there[1]!r} says again what {there[0]!r} says", "keep one"
    if statement_of(block) is not None:
        yield from _of_statement(storage, known, block)
    else:
        yield from _of_data(storage, known, block, is_per_row)
    if "format" in block and not known.has_format:
        others = ", ".join(name for name, one in STORAGES.items() if one.has_format)
        yield ("format",), f"{storage} has no format", f"it is for {others}"
    if storage == "event_log" and is_per_row and not {"data", "args"}.isdisjoint(block):
        hint = "leave `data` out, or choose a storage"
        yield (), "the rows of a loop are in the log as they are, and nothing else is", hint


def _of_statement(
    storage: str, known: Storage, block: Mapping[str, Any]
) -> Iterator[tuple[Path, str, str | None]]:
    statement = str(block["statement"])
    if not known.dialects:
        there = ", ".join(name for name, one in STORAGES.items() if one.dialects)
        yield ("statement",), f"{storage} takes no statement", f"{there} do; give `data`"
    for name in ("data", "args", "mode", "key", "table"):
        if name in block:
            yield (name,), f"{name!r} means nothing beside a statement", "say it in the statement"
    if "{{" in statement or "{%" in statement:
        hint = "bind values: name them in the statement and give them in `params`"
        yield ("statement",), "is a template, and values are never put into a statement", hint


def _of_data(
    storage: str, known: Storage, block: Mapping[str, Any], is_per_row: bool
) -> Iterator[tuple[Path, str, str | None]]:
    mode = mode_of(storage, block)
    if known.dialects and not known.is_table:
        yield (), f"a {storage} sink needs a statement", "write `statement` and `params`"
    if "params" in block:
        yield ("params",), "'params' are for a statement", "give `data`, or write a `statement`"
    if mode in MODES and mode not in known.modes:
        there = ", ".join(known.modes) or "none"
        yield ("mode",), f"{storage} has no mode {mode!r}", f"there are {there}"
    is_vector = storage == "vector" and is_builtin(storage, block)
    if (known.is_table or is_vector) and not _has_table(block):
        yield (), f"a {storage} sink needs a table", "add `table`, which must be there already"
    if not known.is_table:
        return
    if mode in ("update", "upsert"):
        yield from _of_key(mode, block)
    if mode == "overwrite" and is_per_row:
        hint = "put the sink on the loop's step, or give it mode upsert and a key"
        yield ("mode",), "every row would empty the table", hint


def _of_key(mode: str, block: Mapping[str, Any]) -> Iterator[tuple[Path, str, str | None]]:
    key = block.get("key")
    columns = [key] if isinstance(key, str) else key
    if not columns:
        yield (), f"mode {mode} needs a key", "name the columns that tell rows apart: key: [id]"
        return
    data = block.get("data", block.get("args"))
    for name in columns if isinstance(data, dict) and isinstance(columns, list) else ():
        if isinstance(name, str) and name not in data:
            hint = nearest(name, data) or f"there are {', '.join(data)}"
            yield ("key",), f"the key {name!r} is no column of `data`", hint


def _check_names(
    draft: PlaybookDraft, storage: str, known: Storage, block: Mapping[str, Any], path: Path
) -> None:
    """Look at what the storage needs to know of itself: keys of `spec`, driver, address."""
    spec = spec_of(block)
    for key in spec:
        if key not in (*known.spec, "driver", "timeout") and known.spec:
            hint = nearest(key, known.spec) or f"usual are {', '.join(known.spec)}"
            what = f"{key!r} is not usual for {storage}"
            draft.report((*path, "spec", key), what, hint, Severity.WARNING, at_key=True)
    driver = driver_of(storage, block)
    if draft.clients and (why := missing(storage, driver)) is not None:
        at = next((key for key in ("driver", "dialect") if key in spec), None)
        draft.report((*path, "spec", at) if at else path, why, at_key=True)
    is_named = not block.keys().isdisjoint(AUTH_KEYS)
    if storage in ("postgres", "vector") and not is_named and "dsn" not in spec:
        hint = "name a credential, or give spec: {dsn: …}"
        draft.report(path, f"a {storage} sink needs `auth`", hint, at_key=True)


def _check_parameters(
    draft: PlaybookDraft, known: Storage, statement: str, block: Mapping[str, Any], path: Path
) -> None:
    """Compare the parameters of a statement with the values given for them."""
    is_cypher = "cypher" in known.dialects
    pattern, sign = (_CYPHER_NAME, "$") if is_cypher else (_SQL_NAME, ":")
    quoted = _CYPHER_QUOTED if is_cypher else _SQL_QUOTED
    names = set(pattern.findall(quoted.sub(" ", statement)))
    params = block.get("params") or {}
    given = set(params) if isinstance(params, dict) else set()
    for name in sorted(names - given):
        hint = nearest(name, given) or "add it to `params`"
        draft.report((*path, "statement"), f"{sign}{name} has no value", hint, at_key=True)
    for name in sorted(given - names):
        what = f"{name!r} is not in the statement, which names values as {sign}name"
        at = (*path, "params", name)
        draft.report(at, what, nearest(name, names), Severity.WARNING, at_key=True)


def _check_place(draft: PlaybookDraft, storage: str, block: Mapping[str, Any], path: Path) -> None:
    """Warn of a name that all rows of a loop share."""
    spec = spec_of(block)
    key = next((one for one in _NAMED[storage] if one in spec), "")
    name = spec.get(key)
    if isinstance(name, str) and "{{" not in name:
        what = f"every row would write {name!r}, and the last one stays"
        hint = "put the row into the name: {{ iter.… }}, leave it out, or use mode append"
        draft.report((*path, "spec", key), what, hint, Severity.WARNING)


def _has_table(block: Mapping[str, Any]) -> bool:
    return "table" in block or "table" in spec_of(block)
