"""Detection of tasks whose effects may repeat: `check` notes "at least once"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streams.playbook.tool_kinds import SQL_KEYS
from streams.playbook.yaml_document import Authored

_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_INSIDE = frozenset(("noop", "python"))
_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_SELECTING = frozenset(("select", "show", "values", "table"))
_BODIES = ("json", "data", "body", "payload")
_KEYS = frozenset({"idempotency-key", "x-idempotency-key"})
_ASIDE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$", re.S)
_WORD = re.compile(r"[a-z_]+", re.I)
_FENCED = frozenset({"insert", "update", "delete", "merge", "do", "with"})
_HARMLESS = frozenset(
    ("select", "show", "explain", "values", "table", "set", "reset", "analyze", "vacuum")
)
_REPEATABLE = re.compile(r"\bif\s+(not\s+)?exists\b|\bor\s+replace\b|\bon\s+conflict\b", re.I)


def may_repeat(kind: str, config: Authored) -> tuple[str, str] | None:
    """Return which effect of a task may repeat, and how to make it idempotent.

    None: it has none, it is fenced or keyed, or it cannot be determined (code, templates).
    """
    match kind:
        case "http":
            return _http(config)
        case "kafka":
            what = "the records may be produced again"
            return what, "give them a `key` or header by which readers know one they had"
        case "postgres":
            return _postgres(config)
        case "duckdb":
            return _duckdb(config)
    return None


def changes_nothing(kind: str, config: Authored | None) -> bool:
    """Return whether a task only reads, as its text shows; `config` None: not determined."""
    if kind in _INSIDE or config is None:
        return kind in _INSIDE
    match kind:
        case "http":
            has_body = any(config.get(key) is not None for key in (*_BODIES, "form"))
            return str(config.get("method") or ("POST" if has_body else "GET")).upper() in _READING
        case "postgres" | "duckdb" | "snowflake":
            command = _command(config)
            words = [one for one, _ in _statements(command or "")]
            return bool(words) and all(one[0] in _SELECTING for one in words)
    return False


def _http(config: Authored) -> tuple[str, str] | None:
    method = config.get("method")
    if method is None:
        method = "POST" if any(config.get(key) is not None for key in _BODIES) else "GET"
    headers = config.get("headers") or {}
    if str(method).upper() not in _CHANGING or not isinstance(headers, Mapping):
        return None
    if any(str(name).lower() in _KEYS for name in headers):
        return None
    hint = "give it a header Idempotency-Key that is the same each time the row is done"
    return f"the {str(method).upper()} may be sent again", hint


def _postgres(config: Authored) -> tuple[str, str] | None:
    command, fence = _command(config), config.get("fence")
    if command is None or (fence is not None and not isinstance(fence, bool)) or fence:
        return None
    for words, statement in _statements(command):
        if words[0] in _HARMLESS or _REPEATABLE.search(statement):
            continue
        if fence is False and _writes(words):
            return "it has no fence, so it may run again", "leave `fence: false` out"
        if words[0] not in _FENCED:
            return f"{words[0].upper()} is not fenced and may run again", "say `fence: true`"
    return None


def _duckdb(config: Authored) -> tuple[str, str] | None:
    command = _command(config)
    if command is None or config.get("database") in (None, ":memory:"):
        return None
    for words, statement in _statements(command):
        if _writes(words) and not _REPEATABLE.search(statement):
            what = "DuckDB keeps no fence, so it may run again"
            return what, "write it as an upsert: INSERT … ON CONFLICT, or INSERT OR REPLACE"
    return None


def _writes(words: list[str]) -> bool:
    return words[0] in _FENCED and not {"insert", "update", "delete", "merge", "do"}.isdisjoint(
        words
    )


def _command(config: Authored) -> str | None:
    """Return the statements' text; None if it is a template."""
    text = next((config[key] for key in SQL_KEYS if key in config), None)
    return text if isinstance(text, str) and "{{" not in text and "{%" not in text else None


def _statements(command: str) -> list[tuple[list[str], str]]:
    """Return each statement's words in lower case, and its text without quoted parts."""
    plain = _ASIDE.sub(" ", command)
    found = ((_WORD.findall(one.lower()), one) for one in plain.split(";"))
    return [(words, one) for words, one in found if words]
