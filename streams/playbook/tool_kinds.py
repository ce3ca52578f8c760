"""Kinds of tools, with the usual keys of each.

A tool validates its own configuration, so an unusual key is not an error; one that resembles a
usual key is probably misspelt.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points

TOOLS = "streams.tools"
"""Entry-point group of further tools: kind -> factory."""

SQL_KEYS = ("command", "query", "sql", "statement")
_SQL = (*SQL_KEYS, "params", "rows", "auth", "dsn", "timeout")
_ARTIFACT = (
    *("action", "args", "ref", "data", "execution_id", "step", "task"),
    *("range", "url", "file", "content_type", "compression", "headers", "auth", "timeout"),
)
USUAL: Mapping[str, tuple[str, ...]] = {
    "artifact": _ARTIFACT,
    "result": _ARTIFACT,
    "duckdb": (*_SQL, "database"),
    "http": (
        *("method", "url", "params", "headers", "json", "data", "body", "auth", "timeout"),
        *("endpoint", "payload", "follow_redirects", "verify"),
    ),
    "kafka": ("topic", "key", "value", "headers", "records", "auth", "bootstrap_servers"),
    "noop": ("data",),
    "playbook": ("path", "version", "args", "workload", "return"),
    "postgres": (*_SQL, "fence"),
    "python": ("code", "args", "timeout", "memory_bytes", "module", "function"),
}
RAW: Mapping[str, frozenset[str]] = {"python": frozenset({"code"})}
"""Keys whose text is never a template: Python uses braces, too."""
CURSORS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("query", "key", "claim", "auth", "dsn", "params"),
    "kafka": ("topic", "auth", "bootstrap_servers", "from", "to"),
}


@lru_cache
def kinds() -> tuple[str, ...]:
    """Return every kind, including those of plug-ins."""
    return tuple(sorted({*USUAL, *(entry.name for entry in entry_points(group=TOOLS))}))
