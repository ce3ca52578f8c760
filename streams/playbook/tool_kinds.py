"""Kinds of tools, with the usual keys of each.

A tool validates its own configuration, so an unusual key is not an error; one that resembles a
usual key is probably misspelt.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points

from streams.playbook.spelling import Spelling

TOOLS = "streams.tools"
"""Entry-point group of further tools: kind -> factory."""

SQL_KEYS = ("command", "query", "sql", "statement")
_COMMANDS = ("commands", "cmds", "command_b64", "commands_b64")
_ARTIFACT = (
    *("action", "args", "ref", "data", "execution_id", "step", "task"),
    *("range", "url", "file", "content_type", "compression", "headers", "auth", "timeout"),
    "input",
)
USUAL: Mapping[str, tuple[str, ...]] = {
    "artifact": _ARTIFACT,
    "result": _ARTIFACT,
    "duckdb": (*SQL_KEYS, "params", "auth", "timeout", "database", *_COMMANDS),
    "http": (
        *("method", "url", "params", "headers", "json", "data", "body", "auth", "timeout"),
        *("endpoint", "payload", "form", "follow_redirects", "verify", "verify_ssl"),
        "timeout_seconds",
    ),
    "kafka": ("topic", "key", "value", "headers", "records", "timeout"),
    "noop": ("data", "result"),
    "playbook": (
        *("path", "version", "args", "workload", "input", "payload", "timeout"),
        *("return_step", "return_result", "result_step"),
    ),
    "postgres": (
        *(*SQL_KEYS, "params", "rows", "auth", "dsn", "timeout", "fence", "script", "pool"),
        *_COMMANDS,
    ),
    "python": ("code", "script", "args", "input", "context", "libs", "timeout"),
    "snowflake": ("command", "query", "commands", "cmds", "auth", "timeout"),
    "nats": (
        *("operation", "bucket", "key", "value", "ttl", "pattern", "auth", "url", "timeout"),
        *("stream", "subject", "headers", "data", "seq", "last", "name", "encoding"),
    ),
    "container": (
        *("image", "command", "args", "env", "resources", "namespace", "service_account"),
        *("timeout_seconds", "backoff_limit", "restart_policy", "timeout", "auth"),
        *("ttl_seconds_after_finished", "image_pull_policy", "node_selector", "tolerations"),
        *("volumes", "volume_mounts"),
    ),
    "script": ("script", "input", "args", "job", "auth"),
    "subscription": (
        *("source", "operation", "auth", "brokers", "bootstrap_servers", "topic", "group"),
        *("batch", "timeout_ms", "ack", "ack_ids"),
    ),
    "transfer": ("source", "target", "mode", "chunk_size", "timeout"),
    "shell": ("cmds", "command", "cmd", "env", "cwd", "timeout"),
}
_OF_ONE_SPELLING: Mapping[Spelling, Mapping[str, tuple[str, ...]]] = {
    Spelling.NOETL: {
        "duckdb": ("auth", *_COMMANDS),
        "http": ("form", "timeout_seconds"),
        "noop": ("result",),
        "playbook": (
            *("input", "payload", "timeout"),
            *("return_step", "return_result", "result_step"),
        ),
        "postgres": ("script", "pool", *_COMMANDS),
        "python": ("context", "libs"),
    },
    Spelling.SPEC: {"postgres": ("rows",)},
}
"""Keys that a tool reads only in one spelling."""
TRANSFER: Mapping[str, tuple[str, ...]] = {
    "source": (
        *("type", "auth", "query", "command", "url", "endpoint", "method", "params", "headers"),
        *("json", "payload", "body", "data", "timeout", "path", "data_path"),
    ),
    "target": ("type", "auth", "table", "query", "mapping", "mode", "key", "keys"),
}
"""Keys of both ends of a `transfer`."""
RAW: Mapping[str, frozenset[str]] = {"python": frozenset({"code"})}
"""Keys whose text is never a template: Python uses braces, too."""
CURSORS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("query", "key", "claim", "auth", "dsn", "params"),
    "kafka": ("topic", "from", "to"),
}


@lru_cache
def read_keys(kind: str, spelling: Spelling) -> tuple[str, ...]:
    """Return the keys that a tool reads in a spelling; none if they are not known."""
    others = [one for one in Spelling if one is not spelling]
    unread = {key for one in others for key in _OF_ONE_SPELLING[one].get(kind, ())}
    return tuple(key for key in USUAL.get(kind, ()) if key not in unread)


@lru_cache
def kinds() -> tuple[str, ...]:
    """Return every kind, including those of plug-ins."""
    return tuple(sorted({*USUAL, *(entry.name for entry in entry_points(group=TOOLS))}))
