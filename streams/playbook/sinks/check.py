"""Static checks of `sink:` blocks."""

from __future__ import annotations

from collections.abc import Iterator

from streams.events.model import Json
from streams.playbook.draft import PlaybookDraft
from streams.playbook.model import Do
from streams.playbook.problem import Severity
from streams.playbook.shape import nearest
from streams.playbook.sinks.ignored_options import ignored_by_builtin, misleading, without_effect
from streams.playbook.sinks.requirements import OptionProblem, needs
from streams.playbook.sinks.sink_block import SinkBlock
from streams.playbook.sinks.statement_parameters import parameters_of
from streams.playbook.sinks.storages import DIALECTS, MODES, STORAGES, missing, plugged
from streams.playbook.yaml_document import Path, as_list, as_mapping

_NAMED = {"file": ("path",), "s3": ("key", "path"), "gcs": ("key", "path")}
"""Keys of `spec` that name the target; the first one present counts."""
_ONE_OF = (("storage", "tool"), ("data", "args"))


def check_sink(draft: PlaybookDraft, sink: SinkBlock, path: Path, *, is_per_row: bool) -> None:
    """Report all problems of a block."""
    for where, message, hint in (*_problems(sink, is_per_row), *needs(sink)):
        draft.report((*path, *where), message, hint, at_key=True)
    _check_effect(draft, sink, path)
    _check_dialect(draft, sink, path)
    _check_spec(draft, sink, path)
    if sink.statement is not None and sink.known.dialects and sink.is_builtin:
        _check_parameters(draft, sink, sink.statement, path)
    if is_per_row and sink.storage in _NAMED and sink.mode == "overwrite":
        _check_row_name(draft, sink, path)
    if "credentialRef" in sink.written:
        what = "'credentialRef' is deprecated"
        draft.report((*path, "credentialRef"), what, "write `auth`", Severity.NOTE, at_key=True)


def check_rules(draft: PlaybookDraft, rules: Json, path: Path) -> None:
    """Report rules that a sink cannot follow: it has no other task to go to."""
    for place, rule in enumerate(as_list(rules)):
        if not isinstance(rule, dict):
            continue
        verdict = {**rule, **as_mapping(rule.get("else"))}
        if verdict.get("do") in (Do.JUMP, Do.BREAK):
            hint = "a sink can retry, continue or fail"
            draft.report((*path, place), f"a sink cannot {verdict['do']}", hint)
        for key in ("set_iter", "set_vars", "set_ctx"):
            if key in verdict:
                draft.report((*path, place), f"a sink cannot set variables: {key!r}")


def _check_effect(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> None:
    """Warn of options without effect; report errors for those that would write wrong data."""
    harmless = [*without_effect(sink)]
    if sink.is_builtin:
        harmless += ignored_by_builtin(sink)
        severity = draft.new_error
        for where, what, hint in misleading(sink):
            draft.report((*path, *where), what, hint, severity, at_key=True)
    for where, what, hint in harmless:
        draft.report((*path, *where), what, hint, Severity.WARNING, at_key=True)


def _check_dialect(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> None:
    """Report a dialect that the driver does not support; one of another package may."""
    known, dialect, driver = sink.known, sink.spec.get("dialect"), str(sink.spec.get("driver"))
    if dialect is None or not known.dialects or f"{sink.storage}.{driver}" in plugged():
        return
    at = (*path, "spec", "dialect")
    if dialect not in DIALECTS:
        hint = nearest(str(dialect), DIALECTS) or f"there are {', '.join(DIALECTS)}"
        draft.report(at, f"there is no dialect {dialect!r}", hint, draft.new_error, at_key=True)
    elif dialect not in known.dialects and driver in known.drivers:  # else it names the driver
        what = f"{driver} speaks {' and '.join(known.dialects)}, not {dialect}"
        hint = f"a package can bring a driver for it: {sink.storage}.{dialect}"
        draft.report(at, what, hint, draft.new_error, at_key=True)


def _problems(sink: SinkBlock, is_per_row: bool) -> Iterator[OptionProblem]:
    for names in _ONE_OF:
        there = [name for name in names if name in sink.written]
        if len(there) > 1:
            yield (there[1],), f"{there[1]!r} repeats {there[0]!r}", "keep one"
    if sink.statement is not None:
        yield from _statement_problems(sink, sink.statement)
    else:
        yield from _data_problems(sink, is_per_row)
    if "format" in sink.written and not sink.known.has_format:
        others = ", ".join(name for name, one in STORAGES.items() if one.has_format)
        yield ("format",), f"{sink.storage} has no format", f"it is for {others}"
    is_given = not {"data", "args"}.isdisjoint(sink.written)
    if sink.storage == "event_log" and is_per_row and is_given:
        hint = "leave `data` out, or choose a storage"
        yield (), "the log holds the rows of a loop as they are, and nothing else", hint


def _statement_problems(sink: SinkBlock, statement: str) -> Iterator[OptionProblem]:
    if not sink.known.dialects:
        there = ", ".join(name for name, one in STORAGES.items() if one.dialects)
        yield ("statement",), f"{sink.storage} takes no statement", f"{there} do; give `data`"
    for name in ("data", "args", "mode", "key", "table"):
        if name in sink.written:
            hint = "put it into the statement"
            yield (name,), f"{name!r} has no meaning beside a statement", hint
    if "{{" in statement or "{%" in statement:
        hint = "bind values: name them in the statement and give them in `params`"
        yield ("statement",), "is a template, and values are never put into a statement", hint


def _data_problems(sink: SinkBlock, is_per_row: bool) -> Iterator[OptionProblem]:
    storage, known, mode = sink.storage, sink.known, sink.mode
    if known.dialects and not known.is_table:
        yield (), f"a {storage} sink needs a statement", "write `statement` and `params`"
    if "params" in sink.written:
        yield ("params",), "'params' are for a statement", "give `data`, or write a `statement`"
    if mode in MODES and mode not in known.modes:
        there = ", ".join(known.modes) or "none"
        yield ("mode",), f"{storage} has no mode {mode!r}", f"there are {there}"
    is_vector = storage == "vector" and sink.is_builtin
    if (known.is_table or is_vector) and not sink.has_table:
        yield (), f"a {storage} sink needs a table", "add `table`; the table must exist already"
    if not known.is_table:
        return
    if mode in ("update", "upsert"):
        yield from _key_problems(sink)
    if mode == "overwrite" and is_per_row:
        hint = "put the sink on the loop's step, or give it mode upsert and a key"
        yield ("mode",), "every row would empty the table", hint


def _key_problems(sink: SinkBlock) -> Iterator[OptionProblem]:
    key = sink.written.get("key")
    columns: Json = [key] if isinstance(key, str) else key
    if not columns:
        hint = "name the columns that identify a row: key: [id]"
        yield (), f"mode {sink.mode} needs a key", hint
        return
    data = sink.written.get("data", sink.written.get("args"))
    if not isinstance(data, dict):
        return
    for name in as_list(columns):
        if isinstance(name, str) and name not in data:
            hint = nearest(name, data) or f"there are {', '.join(data)}"
            yield ("key",), f"the key {name!r} is not a column of `data`", hint


def _check_spec(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> None:
    """Check the storage's options: keys of `spec`, driver, address."""
    spec, known = sink.spec, sink.known
    for key in spec:
        if key not in (*known.spec, "driver", "timeout") and known.spec:
            hint = nearest(key, known.spec) or f"usual are {', '.join(known.spec)}"
            what = f"{key!r} is not usual for {sink.storage}"
            draft.report((*path, "spec", key), what, hint, Severity.WARNING, at_key=True)
    if draft.clients and (why := missing(sink.storage, sink.driver)) is not None:
        at = next((key for key in ("driver", "dialect") if key in spec), None)
        draft.report((*path, "spec", at) if at else path, why, at_key=True)
    if sink.storage in ("postgres", "vector") and not sink.has_credential and "dsn" not in spec:
        hint = "name a credential, or give spec: {dsn: …}"
        draft.report(path, f"a {sink.storage} sink needs `auth`", hint, at_key=True)


def _check_parameters(draft: PlaybookDraft, sink: SinkBlock, statement: str, path: Path) -> None:
    """Compare the parameters of a statement with the values given for them."""
    sign, names = parameters_of(statement, sink.known.dialects)
    given = set(as_mapping(sink.written.get("params")))
    for name in sorted(names - given):
        hint = nearest(name, given) or "add it to `params`"
        draft.report((*path, "statement"), f"{sign}{name} has no value", hint, at_key=True)
    for name in sorted(given - names):
        what = f"{name!r} is not in the statement, which names values as {sign}name"
        at = (*path, "params", name)
        draft.report(at, what, nearest(name, names), Severity.WARNING, at_key=True)


def _check_row_name(draft: PlaybookDraft, sink: SinkBlock, path: Path) -> None:
    """Warn of an object name that all rows of a loop share."""
    key = next((one for one in _NAMED[sink.storage] if one in sink.spec), "")
    name = sink.spec.get(key)
    if isinstance(name, str) and "{{" not in name:
        what = f"every row would write {name!r}, and only the last one remains"
        hint = "put the row into the name: {{ iter.… }}, leave it out, or use mode append"
        draft.report((*path, "spec", key), what, hint, Severity.WARNING)
