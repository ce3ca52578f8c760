"""Storages of sinks: modes, options, drivers and guarantees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import entry_points
from importlib.util import find_spec

DRIVERS = "streams.sinks"
"""Entry-point group of further drivers: `<storage>.<driver>` -> factory."""
ON = ("success", "error", "always")
MODES = ("append", "overwrite", "update", "upsert")
FORMATS = ("json", "csv", "parquet")
DIALECTS = ("sql", "cypher", "gremlin", "sparql")


@dataclass(frozen=True, slots=True)
class ClientPackage:
    """A package that a driver needs; `install` brings it."""

    module: str
    install: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Capabilities of a storage; the first of `modes` is the default."""

    modes: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    """Dialects of its statements; empty: it takes no statement."""
    is_table: bool = False
    has_format: bool = False
    spec: tuple[str, ...] = ()
    drivers: Mapping[str, ClientPackage | None] = field(default_factory=dict)
    """Built-in drivers, the default first; None: it needs no package."""
    repeats: tuple[str, ...] = ()
    """Modes in which a repeated attempt writes again."""


def _extra(name: str, module: str) -> ClientPackage:
    return ClientPackage(module, f'pip install "noetl-streams[{name}]"')


_TABLE = ("append", "overwrite", "update", "upsert")
_OBJECT = ("path", "key", "prefix", "bucket")
STORAGES: Mapping[str, Storage] = {
    "event_log": Storage(),
    "postgres": Storage(
        modes=_TABLE, dialects=("sql",), is_table=True, spec=("table", "dsn", "dialect")
    ),
    "duckdb": Storage(
        modes=_TABLE,
        dialects=("sql",),
        is_table=True,
        spec=("table", "database", "path", "dialect"),
    ),
    "bigquery": Storage(
        modes=_TABLE,
        dialects=("sql",),
        is_table=True,
        spec=("table", "project", "dataset", "location", "endpoint", "dialect"),
        drivers={"bigquery": _extra("bigquery", "google.cloud.bigquery")},
    ),
    "snowflake": Storage(
        modes=_TABLE,
        dialects=("sql",),
        is_table=True,
        spec=("table", "account", "database", "schema", "warehouse", "role", "dialect"),
        drivers={"snowflake": _extra("snowflake", "snowflake.connector")},
        repeats=("append",),
    ),
    "s3": Storage(
        modes=("overwrite", "append"),
        has_format=True,
        spec=(*_OBJECT, "endpoint", "region"),
    ),
    "gcs": Storage(modes=("overwrite", "append"), has_format=True, spec=(*_OBJECT, "endpoint")),
    "file": Storage(
        modes=("overwrite", "append"), has_format=True, spec=("path",), repeats=("append",)
    ),
    "kv": Storage(
        modes=("upsert", "overwrite", "update", "append"),
        spec=("driver", "namespace", "url", "ttl"),
        drivers={"redis": _extra("kv", "redis")},
        repeats=("append",),
    ),
    "vector": Storage(
        modes=("upsert", "append", "update"),
        spec=("driver", "table", "id_column", "vector_column", "meta_column", "dsn"),
        drivers={"pgvector": None},
    ),
    "graph": Storage(
        dialects=("cypher",),
        spec=("driver", "dialect", "url", "database", "path"),
        drivers={
            "neo4j": _extra("graph", "neo4j"),
            "ladybug": ClientPackage("ladybug", "pip install ladybug"),
        },
    ),
}
_KEYED = re.compile(r"(merge|update|delete|create\s+or\s+replace)\b", re.I)
_CYPHER_ADDS = re.compile(r"(?<!\bon )\bcreate\b", re.I)
_VALUE = re.compile(r"'(?:[^']|'')*'|[:$]\w+")
_COUNTS = re.compile(r"([\w.]+)\s*=[^;=]*\b\1\b[^;=]*?[-+*/|]")


def default_driver(storage: str, dialect: str) -> str:
    """Return the default driver of a storage and dialect."""
    known = STORAGES[storage]
    if dialect not in ("", *known.dialects):
        return dialect
    return next(iter(known.drivers), "")


def missing(storage: str, driver: str) -> str | None:
    """Return why a driver is not available, and what to do; None: it is."""
    known = STORAGES[storage].drivers
    if not driver or f"{storage}.{driver}" in plugged():
        return None
    if driver not in known:
        ours = f"; there are {', '.join(known)}" if known else ""
        return (
            f"there is no driver {driver!r} for {storage} here{ours}; "
            f"a package can bring one by the entry point {storage}.{driver} in the group {DRIVERS}"
        )
    client = known[driver]
    if client is not None and not _is_there(client.module):
        return (
            f"{storage} needs the package {client.module}, which is not installed: {client.install}"
        )
    return None


def exactly_once_hint(storage: str) -> str:
    """Return advice on how to make a repeated attempt idempotent."""
    known = STORAGES[storage]
    if not known.modes:
        return "write MERGE instead of CREATE, where that matters"
    same = " or ".join(mode for mode in known.modes if mode not in known.repeats)
    return f"mode {same} writes the same once more; postgres and duckdb append once"


def is_exact(storage: str, mode: str, statement: str | None) -> bool:
    """Return whether a repeated attempt leaves the same data as one attempt."""
    if statement is None:
        return mode not in STORAGES[storage].repeats
    if storage not in ("snowflake", "graph"):
        return True
    text = " ".join(_VALUE.sub("?", statement).split())
    if _COUNTS.search(text):
        return False
    if storage == "graph":
        return not _CYPHER_ADDS.search(text)
    parts = [part.strip() for part in text.split(";")]
    return all(_KEYED.match(part) for part in parts if part)


@lru_cache
def plugged() -> frozenset[str]:
    """Return the drivers of installed packages, as `<storage>.<driver>`."""
    return frozenset(entry.name for entry in entry_points(group=DRIVERS))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
